"""The compiled part, which setup.cfg cannot describe. If it cannot be built, the Python functions are used."""

import os

from setuptools import Extension, setup

FOLDER = "scrapy_neardup/native"
HEADERS = ("call", "words", "dictionary", "han", "sets", "prints", "markup")
setup(
    ext_modules=[
        Extension(
            "scrapy_neardup.native._native",
            [f"{FOLDER}/_native.c"],
            depends=[f"{FOLDER}/{name}.h" for name in HEADERS],
            extra_compile_args=[] if os.name == "nt" else ["-O3"],
            optional=True,
        )
    ]
)
