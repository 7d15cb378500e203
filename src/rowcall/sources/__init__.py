"""Where files come from that nobody uploads, and where news of jobs goes: other people's networks, behind one guard."""
