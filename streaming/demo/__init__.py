"""Real consumer groups that each show one thing a group can suffer from, and a producer that feeds them.

`DEMO_GROUPS` is the table of them; `DemoLoad` runs them in processes of their own beside the monitor.
"""

from __future__ import annotations

from streaming.demo.groups import DEMO_GROUPS, DemoGroup, DemoMember
from streaming.demo.load import DemoError, DemoLoad
from streaming.demo.topics import DEMO_TOPICS, DemoTopic, create_demo_topics

__all__ = [
    "DEMO_GROUPS",
    "DEMO_TOPICS",
    "DemoError",
    "DemoGroup",
    "DemoLoad",
    "DemoMember",
    "DemoTopic",
    "create_demo_topics",
]
