"""Hand-written records. Each record tests one corner case of the format, which `why` names.

The golden file contains Kafka's results for these records. It also contains `why`, so a change needs new golden files.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TypeAlias

Case: TypeAlias = "dict[str, str | None]"

COMMIT_KEY = "0001 0001 67 0001 74 00000003"
LEGACY_KEY = "0000 0001 67 0001 74 00000003"
GROUP_KEY = "0002 0001 67"
EPOCH_KEY = "0003 0001 67"
MEMBER_KEY = "0005 0001 67 0001 6d"
STREAMS_KEY = "0011 0001 67"
STREAMS_MEMBER_KEY = "0013 0001 67 0001 6d"
STREAMS_CURRENT_KEY = "0016 0001 67 0001 6d"
OFFSET_V4 = "0004 0000000000000029 00000001 {metadata} 0000000000000007 {tags}"
# instanceId, rackId, clientId, clientHost, subscribedTopicNames, subscribedTopicRegex, rebalanceTimeoutMs, and last
# serverAssignor
MEMBER_V0 = "0000 00 00 02 63 02 68 01 00 0000ea60 00 {tags}"
ID = "00112233445566778899aabbccddeeff"


def _base64(hexadecimal: str | None) -> str | None:
    return None if hexadecimal is None else b64encode(bytes.fromhex(hexadecimal)).decode()


def _record(why: str, key: str, value: str | None) -> Case:
    return {"why": why, "key": _base64(key), "value": _base64(value)}


def _commit(why: str, *, metadata: str = "01", tags: str = "00") -> Case:
    return _record(why, COMMIT_KEY, OFFSET_V4.format(metadata=metadata, tags=tags))


def _member(why: str, tags: str) -> Case:
    return _record(why, MEMBER_KEY, MEMBER_V0.format(tags=tags))


def _long_string(count: int, varint: str) -> str:
    return varint + "61" * count


CASES: tuple[Case, ...] = (
    _record("type 0 takes version 0", LEGACY_KEY, "0000 0000000000000029 0000 0000000000000007"),
    _record("type 0 takes no version 1", LEGACY_KEY, "0001 0000000000000029 0000 0000000000000007 0000000000000008"),
    _record(
        "an expiry stands in version 1 alone",
        COMMIT_KEY,
        "0001 0000000000000029 0000 0000000000000007 0000000000000008",
    ),
    _record(
        "version 5 of an offset commit is unknown", COMMIT_KEY, "0005 0000000000000029 00000001 01 0000000000000007 00"
    ),
    _record("a negative value version is unknown", COMMIT_KEY, "ffff 0000000000000029 0000 0000000000000007"),
    _record("an empty value is no tombstone", COMMIT_KEY, ""),
    _record("half a version is no value", COMMIT_KEY, "00"),
    _record("a tombstone", COMMIT_KEY, None),
    _record(
        "bytes behind a key and a value are ignored",
        COMMIT_KEY + "ff",
        "0000 0000000000000029 0000 0000000000000007 ffff",
    ),
    _record("record type 9 is unused", "0009 0001 67", "0000"),
    _record("a tombstone of the unused record type 18 is unknown too", "0012 0001 67", None),
    _record("a negative record type is unknown", "ffff 0001 67", None),
    _record("a key of one byte", "00", None),
    _record("an empty key", "", None),
    _record("the key of an abort marker looks like a broken legacy commit", "0000 0000", "0000 00000000"),
    _record("the key of a commit marker looks like a broken legacy commit", "0000 0001", "0000 00000000"),
    _record("the group of a key is never null", "0001 ffff 0001 74 00000003", None),
    _record(
        "any negative length is null, where null is allowed", GROUP_KEY, "0000 0001 70 00000001 8000 fffe 00000000"
    ),
    _record("a null protocol type is refused", GROUP_KEY, "0000 ffff 00000001 ffff ffff 00000000"),
    _record("a null members array is refused", GROUP_KEY, "0000 0000 00000001 ffff ffff ffffffff"),
    _record("more members than bytes left are refused", GROUP_KEY, "0000 0000 00000001 ffff ffff 00000001"),
    _record("a count beyond any record is refused", GROUP_KEY, "0000 0000 00000001 ffff ffff 7fffffff"),
    _record("a negative timestamp is printed", GROUP_KEY, "0002 0000 00000001 ffff ffff ffffffffffffffff 00000000"),
    _commit("no tagged field: the topic id is left out"),
    _commit("a topic id", tags="01 00 10" + ID),
    _commit("the zero topic id is left out though present", tags="01 00 10" + "00" * 16),
    _commit("a known tag's size is ignored", tags="01 00 01" + ID),
    _commit("a tag given twice: the last wins", tags="02 00 10" + ID + "00 10" + "11" * 16),
    _commit("a tag given twice, last with its default: left out", tags="02 00 10" + ID + "00 10" + "00" * 16),
    _commit("tags out of order", tags="02 05 02 abcd 00 10" + ID),
    _commit("an unknown tag is not printed", tags="01 07 03 abcdef"),
    _commit("an unknown tag may be empty", tags="01 07 00"),
    _commit("an unknown tag longer than the record", tags="01 07 04 abcdef"),
    _commit("an unknown tag of size -1", tags="01 07 ff ff ff ff 0f"),
    _commit("a tag of -1 is unknown", tags="01 ff ff ff ff 0f 01 aa"),
    _commit("a tag count of -1 is none", tags="ff ff ff ff 0f"),
    _commit("a tag count of the least int is none", tags="80 80 80 80 08"),
    _commit("two tags announced, one there", tags="02 07 01 aa"),
    _commit("an overlong tag count", tags="81 80 80 80 00 07 01 aa"),
    _commit("bits 32 to 34 of a varint are dropped", tags="81 80 80 80 70 07 01 aa"),
    _commit("a varint of six bytes", tags="81 80 80 80 80 00 07 01 aa"),
    _commit("no byte for the tag count", tags=""),
    _commit("a compact string of 126 bytes has a one-byte length", metadata=_long_string(126, "7f")),
    _commit("a compact string of 127 bytes has a two-byte length", metadata=_long_string(127, "8001")),
    _commit("a compact string of 300 bytes", metadata=_long_string(300, "ad02")),
    _commit("a compact string of 32,767 bytes is the longest", metadata=_long_string(32767, "808002")),
    _commit("a compact string of 32,768 bytes is refused", metadata=_long_string(32768, "818002")),
    _commit("a null compact string is refused", metadata="00"),
    _commit("an overlong null is null", metadata="80 00"),
    _commit("a length of -2 is null", metadata="ff ff ff ff 0f"),
    _commit("the least int less one is the greatest length, not a null", metadata="80 80 80 80 08"),
    _commit("an overlong length", metadata="82 80 80 80 00 61"),
    _commit("an encoded surrogate is one replacement", metadata="06 61 eda080 62"),
    _commit("an encoded surrogate pair is two replacements", metadata="07 eda0bdedb880"),
    _commit("half an encoded surrogate is one replacement", metadata="04 eda0 61"),
    _commit("a character cut short is one replacement", metadata="05 61 f09fa6"),
    _commit("stray and overlong bytes are one replacement each", metadata="06 80 c0 80 fe ff"),
    _commit("U+2028 and U+0000 are text", metadata="05 e280a8 00"),
    _record("an absent metadata hash is left out", EPOCH_KEY, "0000 00000005 00"),
    _record("a metadata hash of 0 is left out", EPOCH_KEY, "0000 00000005 01 00 08 0000000000000000"),
    _record("a metadata hash of -1 is printed", EPOCH_KEY, "0000 00000005 01 00 08 ffffffffffffffff"),
    _member("an absent classic member is left out, not null", "00"),
    _member("a null classic member, as every ordinary member has it", "01 00 01 00"),
    _member("a null classic member by a negative varint", "01 00 05 ff ff ff ff 0f"),
    _member("a classic member that equals the default is left out", "01 00 07 01 00000000 01 00"),
    _member(
        "a default classic member with an unknown tag does not equal the default", "01 00 0a 01 00000000 01 01 07 01 aa"
    ),
    _member(
        "a default classic member with an unknown tag, then without",
        "02 00 0a 01 00000000 01 01 07 01 aa 00 07 01 00000000 01 00",
    ),
    _member(
        "a default classic member without an unknown tag, then null", "02 00 0a 01 00000000 01 01 07 01 aa 00 01 00"
    ),
    _member("an unknown tag of the value is none of its classic member", "02 00 07 01 00000000 01 00 07 01 aa"),
    _member("a classic member with a null list", "01 00 07 01 00000000 00 00"),
    _member("a classic member whose presence is 5", "01 00 07 05 0000ea60 01 00"),
    _member("a classic member with a protocol", "01 00 0f 01 0000ea60 02 06 72616e6765 03 0000 00 00"),
    _member("a protocol with an unknown tag", "01 00 0f 01 0000ea60 02 02 72 01 01 03 01 ff 00"),
    _member("a protocol with null metadata", "01 00 0f 01 0000ea60 02 02 72 00 00 00"),
    _record("both tagged fields absent", STREAMS_KEY, "0000 00000005 0000000000000000 00"),
    _record(
        "a validated topology epoch of -1 and no configs are left out",
        STREAMS_KEY,
        "0000 00000005 0000000000000001 02 00 04 ffffffff 01 01 01",
    ),
    _record(
        "null configs are printed, the epoch before them",
        STREAMS_KEY,
        "0000 00000005 0000000000000001 02 01 01 00 00 04 00000003",
    ),
    _record(
        "configs given twice: the last wins",
        STREAMS_KEY,
        "0000 00000005 0000000000000001 02 01 05 02 02 61 02 62 00 01 01 01",
    ),
    _record(
        "a present endpoint",
        STREAMS_MEMBER_KEY,
        "0000 00 00 02 63 02 68 00000000 00000000 02 70 01 02 68 ffff 00 01 00",
    ),
    _record(
        "an endpoint led by any byte not negative",
        STREAMS_MEMBER_KEY,
        "0000 00 00 02 63 02 68 00000000 00000000 02 70 00 02 68 0000 00 01 00",
    ),
    _record(
        "an endpoint led by any negative byte is null",
        STREAMS_MEMBER_KEY,
        "0000 00 00 02 63 02 68 00000000 00000000 02 70 80 01 00",
    ),
    _record(
        "assignment epochs absent, null, empty and full",
        STREAMS_CURRENT_KEY,
        (
            "0000 00000001 00000000 01 05"
            "02 61 02 00000007 00  02 62 01 01 00 01 00  02 63 01 01 00 01 01  02 64 01 01 00 09 03 00000001 ffffffff"
            "01 01 01 01 01 00"
        ),
    ),
    {"why": "a subscription without bytes", "subscription": ""},
    {"why": "a subscription of half a version", "subscription": _base64("00")},
    {"why": "a subscription of version -1", "subscription": _base64("ffff 00000000 ffffffff")},
    {"why": "a subscription of version 0", "subscription": _base64("0000 00000001 0001 74 ffffffff")},
    {
        "why": "a subscription of version 4 is read as 3",
        "subscription": _base64("0004 00000001 0001 74 ffffffff 00000000 00000007 0002 7231 abcdef"),
    },
    {
        "why": "a subscription of version 4 that ends as version 2 would",
        "subscription": _base64("0004 00000001 0001 74 ffffffff 00000000 00000007"),
    },
    {
        "why": "a topic owned twice keeps both entries",
        "subscription": _base64("0001 00000000 ffffffff 00000002 0001 74 00000001 00000001 0001 74 00000001 00000002"),
    },
    {"why": "user data longer than the subscription", "subscription": _base64("0000 00000000 00000002 aa")},
    {
        "why": "an assignment of version 9 is read as 3",
        "assignment": _base64("0009 00000001 0001 74 00000001 00000005 00000000 ff"),
    },
    {"why": "an assignment of version -2", "assignment": _base64("fffe 00000000 ffffffff")},
    {"why": "an assignment with a null list", "assignment": _base64("0000 ffffffff ffffffff")},
    {"why": "sticky user data without bytes", "stickyUserData": ""},
    {"why": "sticky user data of version 0", "stickyUserData": _base64("00000001 0001 74 00000001 00000003")},
    {"why": "sticky user data of version 1", "stickyUserData": _base64("00000001 0001 74 00000001 00000003 00000007")},
    {
        "why": "sticky user data of version 0 with 4 stray bytes looks like version 1",
        "stickyUserData": _base64("00000000 61626364"),
    },
    {"why": "sticky user data of another assignor", "stickyUserData": _base64("6d79206f776e")},
)
