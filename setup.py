"""The compiled part, which setup.cfg cannot describe. If it cannot be built, the Python functions are used."""

import os
import sys
import sysconfig

from setuptools import Extension, setup

FOLDER = "scrapy_neardup/native"
HEADERS = ("call", "words", "dictionary", "han", "record", "postings", "markup")
# With the stable ABI, a wheel of Python 3.11 serves all later versions. Free-threaded Python has no stable ABI.
IS_STABLE = (
    sys.implementation.name == "cpython"
    and sys.version_info >= (3, 11)
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
setup(
    ext_modules=[
        Extension(
            "scrapy_neardup.native._native",
            [f"{FOLDER}/_native.c"],
            depends=[f"{FOLDER}/{name}.h" for name in HEADERS],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if IS_STABLE else [],
            extra_compile_args=[] if os.name == "nt" else ["-O3"],
            optional=True,
            py_limited_api=IS_STABLE,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if IS_STABLE else {},
)
