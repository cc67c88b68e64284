# Two commands: `make demo` and `make test`; each creates .venv and installs what it needs.
SHELL := /bin/bash -o pipefail
PYTHON ?= python3
BIN := .venv/bin
OUT ?= demo-output
# Budget of each anytime solver; the others stop by themselves.
DEMO_SECONDS ?= 10
# C++ sources and the build's description: a change reinstalls (Python files are linked, not copied).
BUILT_FROM := pyproject.toml constraints.txt CMakeLists.txt $(wildcard csrc/*.cpp csrc/*.hpp)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The root folder datasets/ must not shadow an installed package of that name.
export PYTHONSAFEPATH := 1
export OPGYM_ORACLES ?= $(abspath ../shared/oracles)

.PHONY: help demo test test-all lint types core-test clean

help:
	@echo "make demo      place two real models on 4 devices, order one for memory, with every solver; leaves $(OUT)/"
	@echo "make test      lint, types, the C++ core under sanitizers, the test suite (under 15 minutes)"
	@echo "make test-all  the same with the slow tests: training runs and long searches"
	@echo "make clean     remove .venv and build outputs"

.venv/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "opgym needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed-demo: .venv/created $(BUILT_FROM)
	$(BIN)/pip install -q -c constraints.txt -e '.[plot]'
	touch $@

.venv/installed-dev: .venv/created $(BUILT_FROM)
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@ .venv/installed-demo

demo: .venv/installed-demo
	@mkdir -p $(OUT)
	@for model in inception_v2 densenet121; do \
	  echo && echo "== $$model on 4 P100 ==" && \
	  $(BIN)/opgym place onnx-light/$$model --cluster 4xP100 --seconds $(DEMO_SECONDS) \
	    --out $(OUT)/$$model.solution.json --export $(OUT)/$$model.export \
	    --trace $(OUT)/$$model.trace.json --plot $(OUT)/$$model.svg | tee $(OUT)/$$model.txt || exit 1; \
	done
	@echo && echo "== shufflenet, ordered for memory =="
	@$(BIN)/opgym schedule onnx-light/shufflenet --exact --out $(OUT)/shufflenet.order.json \
	  --export $(OUT)/shufflenet.reordered.onnx --plot $(OUT)/shufflenet.svg | tee $(OUT)/shufflenet.txt
	@echo && echo "Left in $(OUT)/: the tables (.txt), timelines (.svg), traces for ui.perfetto.dev (.trace.json),"
	@echo "solutions for 'opgym check' (.solution.json, .order.json), annotated models (.export/) and a reordered one (.reordered.onnx)."

test: lint types core-test
	$(BIN)/pytest -m "not slow" -n auto

test-all: lint types core-test
	$(BIN)/pytest

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-dev
	$(BIN)/mypy

# The core without Python, with address and undefined-behaviour sanitizers.
core-test: .venv/installed-dev
	$(BIN)/cmake -S . -B build/sanitize -DOPGYM_PYTHON=OFF -DOPGYM_SANITIZE=ON > /dev/null
	$(BIN)/cmake --build build/sanitize --target core_test --parallel 2
	build/sanitize/core_test

clean:
	rm -rf .venv build $(OUT)
