"""Runs real consumer groups for the demo, and a producer for their topics. Each group shows a typical behaviour.

`DEMO_GROUPS` defines the groups. `DemoLoad` runs the groups in separate processes.
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
