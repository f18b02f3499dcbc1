# Everyday commands; the plain ones are in CONTRIBUTING.md. `just` lists them.

_list:
    @just --list --unsorted

# build and run the demo conversation
demo:
    cargo run -p rejoin -- demo

# format, lints, and the tests that read the repository itself
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --quiet -- -D warnings
    cargo test -p rejoin --test all -- tidy:: links:: reference:: help::

# everything, with the real CLIs; `just all --long` adds tests that take minutes
all *args:
    ./scripts/test {{args}}

# one topic or test with the real binary, such as `just topic history::changes`
topic name:
    REJOIN_TEST_CLIS="$PWD/.deps" cargo test -p rejoin --test all -- {{name}}

# a set of tests: fast, clis, pg or long
set profile:
    REJOIN_TEST_CLIS="$PWD/.deps" cargo nextest run --workspace --profile {{profile}} {{ if profile == "long" { "--run-ignored all" } else { "" } }}

# renew the generated pages in docs/
reference:
    cargo run -p rejoin -- reference docs

# the binary for packages
dist:
    cargo build --profile dist --locked -p rejoin
