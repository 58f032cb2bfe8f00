# citelog. `make run` and `make test` are all that a newcomer needs; both set up first.
#
# Variables:
#   PYTHON          interpreter for a new .venv (3.11 to 3.13); found by itself otherwise
#   KB_TORCH_INDEX  package index with CPU builds of torch. Set it where the default index serves
#                   the CUDA build (several gigabytes more): the address is in torch's install guide
#   KB_DATA         data folder of `make run` and `make down` (default ./data)
#   WORKERS         processes that share the tests (default 2; 0: this one alone, to debug)
#   ARGS            more words for the command, e.g. make test ARGS="-k scanner"

SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p))))
KB_TORCH_INDEX ?=
WORKERS ?= 2
TORCH_FROM := $(if $(KB_TORCH_INDEX),--index-url $(KB_TORCH_INDEX)) torch==2.13.0
PIP := $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check --root-user-action=ignore
# Warnings of build tools are kept in a file and shown only when something failed.
QUIETLY = 2> $(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
OCR := tesseract-ocr $(addprefix tesseract-ocr-,eng deu rus bul srp srp-latn mkd hrv slv)

# An empty HOME is worse than none: without one, programs ask the system for it.
ifeq ($(strip $(HOME)),)
unexport HOME
endif

.PHONY: help setup run test check fmt chaos histories bench eval flow schemas down ocr browser

help:  ## This list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

setup: $(STAMP)  ## Environment and packages; quick when nothing changed

run: setup  ## Everything on this machine; ends with a URL and, once, a password
	@exec $(BIN)/kb up $(ARGS)

test: setup browser  ## All tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

check: setup  ## Format, lint, types, import directions, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(MAKE) --no-print-directory schemas flow
	$(BIN)/python -m docs.make_settings
	$(BIN)/python -m docs.make_asyncapi
	@changed="$$(git status --porcelain -- contracts/schemas README.md docs/operations.md docs/asyncapi.json)"; \
	  test -z "$$changed" || { echo "generated files are not committed:"; echo "$$changed"; exit 1; }

fmt: setup  ## Format, and repair what can be
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

chaos: setup  ## The crash test, 60 documents (ARGS="--runs 20"); a short form is among the tests
	@$(BIN)/python -m tests.chaos.drive $(ARGS)

histories: setup  ## 1,000 random histories against a plain model (ARGS="--runs 50 --seed 7")
	@$(BIN)/python -m tests.model $(ARGS)

bench: setup  ## The figures of eval/RESULTS.md
	@$(BIN)/python -m eval.bench $(ARGS)

# The first run embeds some 6,000 passages, twenty minutes; the vectors are kept.
eval: setup  ## The retrieval tables of eval/RESULTS.md
	@$(BIN)/python -m eval.gate
	@$(BIN)/python -m eval.ablation $(ARGS)
	@$(BIN)/python -m eval.train_answerable
	@$(BIN)/python -m eval.keywords
	@$(BIN)/python -m eval.keyword_peers

flow: setup  ## The flow table in README.md, from the code
	@$(BIN)/python -c "import pathlib, re; from contracts.flow import table; \
	  f = pathlib.Path('README.md'); \
	  f.write_text(re.sub(r'(<!-- flow -->\n).*?(\n<!-- /flow -->)', \
	    lambda m: m[1] + table() + m[2], f.read_text(), flags=re.S))"

schemas: setup  ## JSON Schemas of all events, from the code
	@$(BIN)/python -m contracts.schema

down: setup  ## Stop what make run started (also from another shell)
	@$(BIN)/kb down $(ARGS)

# torch first: the other packages then find it and fetch no other build.
$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "$(PYTHON) is $$($(PYTHON) -V); 3.11 to 3.13 is needed: make PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "this Python cannot make environments (Debian and Ubuntu: apt-get install python3-venv)"; exit 1; }
	@echo "installing packages into $(VENV): about 2 GB, a few minutes the first time"
	@$(PIP) --upgrade pip $(QUIETLY)
	@if $(PIP) --dry-run --report - $(TORCH_FROM) 2>/dev/null | grep -q '"nvidia-'; then \
	  echo "note: this package index serves torch for CUDA, several gigabytes more. For the CPU build:"; \
	  echo "  rm -r $(VENV); make setup KB_TORCH_INDEX=<the index of CPU builds, see torch's install guide>"; \
	fi
	@$(PIP) $(TORCH_FROM) $(QUIETLY)
	@$(PIP) -e ".[dev]" $(QUIETLY)
	@$(MAKE) --no-print-directory ocr
	@touch $@

# The pages are tested in a browser; without one those tests are skipped, and say so.
browser:
	@if command -v chromium >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing chromium (tests of the pages)"; \
	  { apt-get update && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 \
	    || echo "chromium could not be installed: the pages are not tested in a browser"; \
	fi

# Scans in Cyrillic need tesseract; everything else works without it, so nothing here may fail.
ocr:
	@if command -v tesseract >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing tesseract (OCR)"; \
	  { apt-get update && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y --no-install-recommends $(OCR); } >/dev/null 2>&1 \
	    || echo "tesseract could not be installed: scans in Cyrillic will stay without text"; \
	else \
	  echo "no tesseract: scans in Cyrillic will stay without text. To install it:"; \
	  echo "  sudo apt-get install $(OCR)"; \
	fi
