# make help says what there is to make.

# Guests are built outside the tree, once for all clones.
CACHE := $(or $(VMCTL_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vmctl)
GUEST := $(CACHE)/guest/tiny
DEBIAN := $(CACHE)/guest/debian
TOFU := $(CACHE)/tofu
CONFTEST := $(CACHE)/conftest

VERSION := $(or $(shell git describe --tags --always --dirty 2>/dev/null),unknown)
SCRIPTS := $(wildcard scripts/*.sh) .ci/run providers/provision/run.sh guest/tiny.sh guest/debian.sh guest/debian/setup.sh guest/debian/root/usr/local/sbin/lima-cidata guest/tiny/init guest/tiny/etc/udhcpc/default.script \
	guest/tiny/etc/acpi/PWRF/00000080

# libvirt's library is opened at run time: no headers to build with, and a clear error where it is missing.
TAGS := libvirt_dlopen
# The version is set below; a clone of another owner, as in a container, has no other that git would tell to go.
BUILD := go build -buildvcs=false -trimpath
TEST_ENV := VMCTL_TEST_GUEST='$(GUEST)' VMCTL_TEST_IMAGE='$(DEBIAN)' VMCTL_TEST_TOFU='$(TOFU)/tofu' VMCTL_TEST_CONFTEST='$(CONFTEST)/conftest' CGO_ENABLED=1
GO_TEST := $(TEST_ENV) go test -tags $(TAGS)
# The tests of a part; bin/check/PART.tests gets the name and result of each.
GOTEST = $(TEST_ENV) bin/gotest -list bin/check/$@.tests -- -tags $(TAGS)
# Lima's packages are in a module of their own. It needs no C compiler but on macOS, where Lima calls Apple's libraries.
LIMA := cmd/vmctl-lima
LIMA_VERSION := $(shell awk '$$1 == "github.com/lima-vm/lima/v2" {print $$2}' $(LIMA)/go.mod)
LIMA_FLAGS := -ldflags '-s -w -X github.com/lima-vm/lima/v2/pkg/version.Version=$(LIMA_VERSION)'
LIMA_BUILD := go build -C $(LIMA) -buildvcs=false -trimpath $(LIMA_FLAGS)
# The guest agent runs in guests of this machine's architecture, by Lima's name for that.
GUEST_ARCH := $(or $(patsubst arm64,aarch64,$(filter x86_64 arm64 aarch64 riscv64,$(shell uname -m))),x86_64)
GOARCH_x86_64 := amd64
GOARCH_aarch64 := arm64
GOARCH_riscv64 := riscv64
CGO := $(if $(filter Darwin,$(shell uname -s)),1,0)
LIMACTL := $(CACHE)/lima
LINT := go tool -modfile=tools/go.mod golangci-lint

# The sample of the crash matrix moves on with each commit; a run of one commit can be repeated.
SHIFT := $(or $(VMCTL_CRASH_SHIFT),$(shell git rev-list --count HEAD 2>/dev/null),0)

# What fails soonest comes first; then what boots guests, one package after the other.
TESTS := test-core test-code test-provider test-acceptance test-lima
PARTS := build fmt-check tidy-check lint lint-test cross race test-host tofu conftest $(TESTS)
# The parts of check use the same machine and the same guests: one after the other, under make -j too.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help quickstart build vmctl lima limactl tofu conftest guest image test-host test $(TESTS) short repeat race soak crash-matrix bench check fmt fmt-check tidy-check lint lint-test cross coverage clean

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: ## install what is missing, build vmctl, and run a first VM in a folder of yours
	@scripts/quickstart.sh

build: vmctl lima ## build bin/vmctl, and what it runs for Lima: libexec/ and share/

vmctl: ## build bin/vmctl alone, which manages everything but Lima
	@[ -n "$$CC" ] || command -v gcc >/dev/null || scripts/deps.sh build
	CGO_ENABLED=1 $(BUILD) -tags $(TAGS) -ldflags '-X main.version=$(VERSION)' -o bin/vmctl ./cmd/vmctl

# Lima looks for its guest agent and its templates in ../share/lima of its program.
lima: ## build libexec/vmctl-lima, which does Lima's part of vmctl, and Lima's guest agent and templates
	CGO_ENABLED=$(CGO) $(LIMA_BUILD) -o '$(CURDIR)/libexec/vmctl-lima' .
	CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH_$(GUEST_ARCH)) $(LIMA_BUILD) -o '$(CURDIR)/share/lima/lima-guestagent.Linux-$(GUEST_ARCH)' github.com/lima-vm/lima/v2/cmd/lima-guestagent
	@scripts/lima-templates.sh share/lima/templates

limactl: ## build Lima's own program, with which tests act behind vmctl's back
	@scripts/limactl.sh '$(LIMACTL)'

tofu: ## build OpenTofu, which runs modules in some tests, from its sources: once, in some minutes
	@scripts/tool.sh tofu '$(TOFU)'

conftest: ## build conftest, which judges plans in some tests, from its sources: once, in some minutes
	@scripts/tool.sh conftest '$(CONFTEST)'

guest: ## build the tiny guest that tests and the quickstart boot
	@scripts/deps.sh guest
	@guest/tiny.sh '$(GUEST)'

image: ## build the Debian guest, which cloud-init sets up, that tests of images boot
	@scripts/deps.sh image
	@guest/debian.sh '$(DEBIAN)'

# What tests of real systems need.
test-host: guest image limactl
	@scripts/deps.sh build run lima engine test
	@scripts/libvirtd.sh

test: test-host tofu conftest ## install what is missing, and run every test, real VMs included
	@+MAKE='$(MAKE)' scripts/parts.sh $(TESTS)

# The program that runs go test in the parts of check.
bin/gotest: $(wildcard tools/gotest/*.go)
	@mkdir -p bin/check
	go build -C tools -buildvcs=false -trimpath -o '$(CURDIR)/bin/gotest' ./gotest

# The core packages, with the floors of their coverage: their tests run once.
test-core: bin/gotest
	scripts/coverage.sh env $(GOTEST) -timeout 30m -p 2

# The other packages whose tests boot no guest, two at a time. Of those that do, each has the machine to itself: waits of
# guests are measured in the time that they get. Their results are not kept, since go does not see the programs that they build.
test-code: bin/gotest
	$(GOTEST) -timeout 30m -p 2 $$(go list ./... | grep -v '/acceptance' | grep -vxF "$$(scripts/coverage.sh --packages)")

test-provider: bin/gotest
	$(GOTEST) -count=1 -timeout 40m ./acceptance/provider

test-acceptance: bin/gotest
	VMCTL_CRASH_SHIFT=$(SHIFT) $(GOTEST) -count=1 -timeout 70m $$(go list ./acceptance/... | grep -v '/acceptance/provider$$')

test-lima:
	cd $(LIMA) && go test -timeout 15m ./...

short: ## run the tests that need nothing installed, within two minutes
	@scripts/short.sh

repeat: ## run the short tests N times (30), four runs beside each other
	@scripts/repeat.sh $(or $(N),30)

race: ## run the tests of what several processes and goroutines share under the race detector
	CGO_ENABLED=1 go test -race -short ./state/ ./internal/lockfile/ ./internal/parallel/

soak: ## search N random cases (100000) for one that breaks a law of plans and applies
	@scripts/soak.sh $(or $(N),100000)

crash-matrix: test-host ## kill vmctl before each change that it makes, on sim and on real QEMU, and print what came of it; SHARD=2/5 does a part
	VMCTL_CRASH_MATRIX=all VMCTL_CRASH_SHARD=$(SHARD) VMCTL_CRASH_ROWS=$(CURDIR)/bin/crash $(GO_TEST) -timeout 170m -count=1 -v -run TestCrashMatrix ./acceptance/

bench: ## measure vmctl beside Terraform and OpenTofu, where these are installed (VMCTL_BENCH=large: 100,000 resources, too), with VMCTL_BENCH=lima beside limactl, or with VMCTL_BENCH=terraform its share beside the Terraform that it runs
	$(GO_TEST) -timeout 60m -run '^$$' -bench '$(or $(if $(filter lima,$(VMCTL_BENCH)),Lima),$(if $(filter terraform,$(VMCTL_BENCH)),Terraform),Table)' -benchtime 1x ./acceptance/bench

check: ## all that must hold before a change is merged, with the time of each part
	@+MAKE='$(MAKE)' scripts/parts.sh $(PARTS)

fmt: ## format the code
	$(LINT) fmt ./...

fmt-check:
	@out=$$($(LINT) fmt --diff ./...) && [ -z "$$out" ] || { echo "$$out"; echo 'not formatted: run make fmt'; exit 1; }

tidy-check:
	go mod tidy -diff
	cd tools && go mod tidy -diff
	cd $(LIMA) && go mod tidy -diff

# SC2174: mkdir -p -m gives the mode to the last folder alone; here its parents exist.
lint: ## look for mistakes in the code and the scripts
	@scripts/deps.sh build lint
	$(LINT) run ./...
	cd tools && go tool golangci-lint run ./...
	cd $(LIMA) && go tool -modfile=../../tools/go.mod golangci-lint run ./...
	shellcheck --exclude=SC2174 $(SCRIPTS)

# Each rule of .golangci.yml must report what is planted for it. The result is not kept: go does not see that the
# file changed.
lint-test:
	cd tools && go test -count=1 ./...

# What has no libvirt compiles without it, and without a C compiler. vmctl-lima compiles for macOS with Apple's
# headers alone.
cross:
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go vet ./...
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go vet ./...
	cd $(LIMA) && CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go vet ./...

coverage: ## see that no file of what decides, acts, stops, locks and remembers is tested less than it was
	@scripts/coverage.sh

clean: ## remove what was built, but for the guests in the cache
	rm -rf bin libexec share
