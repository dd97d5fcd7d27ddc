# SPDX-License-Identifier: MIT
"""Real servers, started natively and under FlexSC-Threads, and their clients."""
