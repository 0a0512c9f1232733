"""Build the compiled part, and name the addresses of the project, which setup.cfg cannot describe.

If the part cannot be built, the Python functions are used, and the wheel is one for every system.
"""

import os
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

FOLDER = "scrapy_neardup/native"
HEADERS = ("chinese", "record")
# With the stable ABI, a wheel of Python 3.11 serves all later versions. Free-threaded Python has no stable ABI.
IS_STABLE = (
    sys.implementation.name == "cpython"
    and sys.version_info >= (3, 11)
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)


class Wheel(bdist_wheel):
    """A wheel that is tagged by what was built, not by what was meant to be."""

    def run(self) -> None:
        self.run_command("build_ext")
        if not any(os.path.exists(path) for path in self.get_finalized_command("build_ext").get_outputs()):
            self.distribution.ext_modules, self.root_is_pure = [], True
        super().run()


def urls() -> dict[str, str]:
    """Return the addresses of the repository that a release is built from, which its workflow knows."""
    repository = os.environ.get("GITHUB_REPOSITORY")
    if not repository:
        return {}
    home = f"https://github.com/{repository}"
    parts = {"Documentation": "#documentation", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}
    return {"Source": home, **{name: home + part for name, part in parts.items()}}


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
    cmdclass={"bdist_wheel": Wheel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if IS_STABLE else {},
    project_urls=urls(),
)
