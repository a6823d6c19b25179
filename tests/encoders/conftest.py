"""nvdisasm, where it is installed."""

import pytest

from sassir.encoders.mining.oracle import Oracle
from sassir.errors import EncodingError


@pytest.fixture(scope="session")
def oracle():
    """Makes the oracle of an architecture; skips the test where nvdisasm is not installed."""
    try:
        Oracle("sm_90")
    except EncodingError as error:
        pytest.skip(str(error))
    return Oracle
