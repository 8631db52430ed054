"""The logger of models."""

import logging

logger = logging.getLogger("mlserver")
