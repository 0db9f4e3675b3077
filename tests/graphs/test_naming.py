"""The names of tools: kept where they can be, prefixed by one rule, always ones that providers accept."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_envscaler.errors import UsageError
from langchain_envscaler.graphs.naming import matches, publish

ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def test_names_are_kept_where_no_other_server_has_them():
    assert publish([("a", "find"), ("b", "show")], "auto") == {"find": ("a", "find"), "show": ("b", "show")}


@pytest.mark.parametrize("order", [1, -1])
def test_a_shared_name_gets_both_servers_names_whatever_their_order(order):
    tools = [("a", "find"), ("b", "find")][::order]
    assert publish(tools, "auto") == {f"{server}_find": (server, "find") for server, _ in tools}


def test_all_names_can_get_their_servers():
    assert list(publish([("a", "find"), ("b", "show")], "always")) == ["a_find", "b_show"]


def test_a_shared_name_is_refused_where_prefixes_are_not_wanted():
    with pytest.raises(UsageError, match="a/find and for b/find"):
        publish([("a", "find"), ("b", "find")], "never")


def test_names_that_become_one_by_cleaning_are_told_apart_by_their_servers():
    names = publish([("a", "file.read"), ("b", "file/read")], "auto")
    assert list(names) == ["a_file_read", "b_file_read"]


def test_one_servers_two_tools_of_one_name_are_refused():
    with pytest.raises(UsageError, match="a/find and for a/find"):
        publish([("a", "find"), ("a", "find")], "auto")


def test_a_prefixed_name_that_meets_a_plain_one_is_refused():
    with pytest.raises(UsageError, match="a_find"):
        publish([("a", "find"), ("b", "find"), ("c", "a_find")], "auto")


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_every_name_is_one_that_providers_accept(server, name):
    for chosen in publish([(server, name)], "always"):
        assert ACCEPTED.match(chosen)


def test_long_names_stay_different():
    names = [("a", "x" * 80 + "1"), ("a", "x" * 80 + "2")]
    assert len(publish(names, "auto")) == 2


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("find", True), ("f*", True), ("a/*", True), ("a/find", True), ("b/*", False), ("fin", False)],
)
def test_a_pattern_means_a_name_or_a_server_and_a_name(pattern, expected):
    assert matches([pattern], "a", "find") is expected
