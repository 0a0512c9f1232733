"""What setup.cfg can't say: the compiled part. Where it can't be built it is left out: all works, less quickly."""

import os

from setuptools import Extension, setup

FOLDER = "scrapy_neardup/native"
HEADERS = ("call", "words", "dictionary", "han", "sets", "prints", "near", "markup")
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
