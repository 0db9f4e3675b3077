# The environment server: `envscaler serve --http`. Build: docker build -t envscaler .
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN wheel=$(echo /wheels/*.whl) \
 && pip install --no-cache-dir "${wheel}[postgres]" \
 && rm -r /wheels \
 && useradd --create-home --uid 10001 envscaler \
 && install -d -o envscaler /data
USER envscaler
WORKDIR /home/envscaler
ENV PYTHONUNBUFFERED=1 \
    ENVSCALER_HOME=/data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# Landlock and seccomp confine environments inside the container too; where the host has none, nothing starts.
ENTRYPOINT ["envscaler"]
CMD ["serve", "--http", "--host", "0.0.0.0", "--port", "8000", "--require-isolation", "--tokens", "/run/secrets/tokens", "--store", "/data/episodes.sqlite"]
