# Sourced by the scripts beside it: paths, messages, and installing what a
# fresh Debian lacks. Nothing is installed silently.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
root=$PWD

# Needed for let chains (see rust-version in Cargo.toml).
rust_minimum=1.88
# Clippy's and rustdoc's warnings fail the checks up to this version. A newer one
# may have lints that nobody here has seen: it only shows them.
rust_linted=1.95

: "${HOME:=/root}"
export HOME
cache=${NESTOR_CACHE:-$HOME/.cache/nestor}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export PATH="$HOME/.cargo/bin:$PATH"
mkdir -p "$cache"

if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold='' plain=''; fi
say() { printf '%s==> %s%s\n' "$bold" "$*" "$plain"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif have sudo; then sudo "$@"
    else return 1
    fi
}

apt_updated=
apt_update() {
    [ -n "$apt_updated" ] && return
    have apt-get || return 1
    apt_updated=1
    as_root apt-get -qq update >/dev/null || true
}

# apt_install PACKAGE...: says what it does first.
apt_install() {
    apt_update || return 1
    say "installing with apt: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "$@" >/dev/null
}

# The version apt would install, empty when there is none.
apt_candidate() {
    apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)" { print $2 }'
}

at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

rust_version() { rustc --version 2>/dev/null | awk '{ print $2 }'; }

# What to do with warnings: deny them, or with a newer Rust than ours just warn.
lint_level() {
    case $(rust_version) in
        "$rust_linted".*) echo deny ;;
        *) if at_least "$(rust_version)" "$rust_linted"; then echo deny; else echo warn; fi ;;
    esac
}

rust_is_good() {
    have cargo || return 1
    local version
    version=$(rust_version)
    [ -n "$version" ] && at_least "$rust_minimum" "$version"
}

rust_host=${RUSTUP_DIST_SERVER:-https://static.rust-lang.org}

rustup_host_answers() {
    curl -fsSI -m 15 -o /dev/null "$rust_host/dist/channel-rust-stable.toml.sha256" 2>/dev/null
}

# Rust >= $rust_minimum: what is there, else rustup (its host permitting), else
# the distribution's packages. Debian 12 carries a current toolchain for its
# browsers as rustc-web; Debian 13's own rustc is new enough.
need_rust() {
    rust_is_good && return
    say "no Rust toolchain of version $rust_minimum or newer: installing one"
    if have rustup && rustup_host_answers; then
        say "rustup toolchain install stable"
        rustup toolchain install stable --profile minimal -c clippy -c rustfmt && rustup default stable
        rust_is_good && return
    fi
    if rustup_host_answers; then
        say "installing rustup and stable Rust into $HOME/.cargo and $HOME/.rustup"
        if curl -fsSL -m 60 "$rust_host/rustup/rustup-init.sh" -o "$cache/rustup-init.sh"; then
            sh "$cache/rustup-init.sh" -y --no-modify-path --profile minimal -c clippy -c rustfmt
        elif apt_update && [ -n "$(apt_candidate rustup)" ]; then
            apt_install rustup && rustup toolchain install stable --profile minimal -c clippy -c rustfmt && rustup default stable
        fi
        hash -r
        rust_is_good && return
    fi
    apt_update || die "install Rust $rust_minimum or newer (https://rustup.rs) and run this again"
    if at_least "$rust_minimum" "$(apt_candidate cargo)" && at_least "$rust_minimum" "$(apt_candidate rustc)"; then
        apt_install cargo rustc rustfmt rust-clippy
    elif [ -n "$(apt_candidate cargo-web)" ]; then
        apt_install cargo-web rustc-web rustfmt-web rust-web-clippy
    fi
    hash -r
    rust_is_good || die "could not install Rust $rust_minimum or newer; see https://rustup.rs"
}

# Decimal128 and zstd are C libraries that cargo compiles.
need_cc() {
    have cc && return
    say "no C compiler: installing one"
    apt_install gcc libc6-dev || die "install a C compiler and run this again"
}

need_python() {
    python3 -c 'import ensurepip, venv' 2>/dev/null && return
    say "no Python 3 with venv: installing it"
    apt_install python3 python3-venv || die "install python3 and python3-venv and run this again"
}

# Cargo goes by times, and its target folder may serve several checkouts: what
# another one built from newer files would pass for this one's. So whoever comes
# after another checkout builds Nestor's own crates again.
own_the_target() {
    local owner=$CARGO_TARGET_DIR/checkout
    [ "$(cat "$owner" 2>/dev/null)" = "$root" ] && return
    mkdir -p "$CARGO_TARGET_DIR"
    find crates -name '*.rs' -exec touch {} + && echo "$root" >"$owner"
}

need_build_tools() { need_rust; need_cc; own_the_target; }

# venv: makes (once per requirements file) the environment of the end-to-end
# tests and sets $python to its interpreter.
need_venv() {
    need_python
    local requirements=$root/tests/e2e/requirements.txt stamp
    stamp=$(python3 --version | cat - "$requirements" | sha256sum | cut -c1-16)
    local venv=$cache/venv-$stamp
    python=$venv/bin/python
    [ -f "$venv/.complete" ] && return
    say "making the Python environment of the end-to-end tests ($venv)"
    rm -rf "$venv"
    python3 -m venv "$venv" && "$python" -m pip install -q --disable-pip-version-check -r "$requirements" || return 1
    touch "$venv/.complete"
}

# The module that MongoDB's database tools are built of, and the folder in the cache that has them.
mongo_tools_module=github.com/mongodb/mongo-tools@v0.0.0-20260702221138-e4f25276abe9
mongo_tools_names='bsondump mongodump mongorestore mongoexport mongoimport mongostat mongotop'

# need_mongo_tools: MongoDB's database tools. Sets $mongo_tools, empty when they
# cannot be had (no Go on this machine, or one that is too old): the tests then say so.
need_mongo_tools() {
    mongo_tools=
    local folder=$cache/mongo-tools-${mongo_tools_module##*-} go=go source name
    if [ -f "$folder/.complete" ]; then
        mongo_tools=$folder
        return
    fi
    have go || go=/usr/local/go/bin/go
    if ! have "$go"; then
        [ -n "${NESTOR_CI:-}" ] && apt_install golang-go && go=go
        have "$go" || return 0
    fi
    say "building MongoDB's database tools ($folder)"
    source=$("$go" mod download -json "$mongo_tools_module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    [ -n "$source" ] || return 0
    mkdir -p "$folder"
    for name in $mongo_tools_names; do
        (cd "$source" && "$go" build -buildvcs=false -o "$folder/$name" "./$name/main") || return 0
    done
    touch "$folder/.complete"
    mongo_tools=$folder
}

# The version of PostgreSQL's JDBC driver that the end-to-end tests run.
pgjdbc_version=42.7.4

# need_pgjdbc: PostgreSQL's JDBC driver, from Maven Central. Sets $pgjdbc, empty when it cannot be had (no Java or no Maven
# on this machine): the test then says so.
need_pgjdbc() {
    pgjdbc=
    if ! have java || ! have mvn; then
        [ -n "${NESTOR_CI:-}" ] && apt_install default-jdk-headless maven
        { have java && have mvn; } || return 0
    fi
    local folder=$cache/pgjdbc
    local jar=$folder/postgresql-$pgjdbc_version.jar
    if [ ! -f "$jar" ]; then
        say "fetching PostgreSQL's JDBC driver with Maven ($folder)"
        (cd "$cache" && mvn -q -B dependency:copy -Dartifact="org.postgresql:postgresql:$pgjdbc_version" -DoutputDirectory="$folder" >/dev/null) || return 0
    fi
    pgjdbc=$jar
}

# need_pgx: builds the program with which the end-to-end tests run pgx. Sets $pgx, empty when it cannot be had (no Go on
# this machine, or one that is too old): the test then says so.
need_pgx() {
    pgx=
    local source=$root/tests/e2e/sql_clients/pgx go=go stamp program
    have go || go=/usr/local/go/bin/go
    if ! have "$go"; then
        [ -n "${NESTOR_CI:-}" ] && apt_install golang-go && go=go
        have "$go" || return 0
    fi
    stamp=$("$go" version | cat - "$source/main.go" "$source/go.sum" | sha256sum | cut -c1-16)
    program=$cache/pgx-$stamp
    if [ ! -f "$program" ]; then
        say "building the program of the tests with pgx ($program)"
        (cd "$source" && "$go" build -buildvcs=false -o "$program" .) || return 0
    fi
    pgx=$program
}

# node_clients: Node's driver, mongosh and node-postgres. Sets $node_modules, empty when they
# cannot be had (no Node.js on this machine): the tests then say so.
need_node_clients() {
    node_modules=
    if ! have node || ! have npm; then
        [ -n "${NESTOR_CI:-}" ] && apt_install nodejs npm
        { have node && have npm; } || return 0
    fi
    # Node 18 runs the previous major version of the driver only.
    local major driver=mongodb@7 shell=mongosh@2 postgres='pg@8 pg-cursor@2 pg-query-stream@4 pg-copy-streams@7'
    major=$(node -p 'process.versions.node.split(".")[0]')
    [ "$major" -ge 20 ] || { driver=mongodb@6 shell=mongosh@2.3.8; }
    local folder=$cache/node-$major-pg
    node_modules=$folder/node_modules
    [ -f "$folder/.complete" ] && return
    say "fetching Node's drivers and mongosh with npm ($folder)"
    mkdir -p "$folder"
    # shellcheck disable=SC2086 # They are several.
    if npm install --prefix "$folder" --no-audit --no-fund --silent "$driver" "$shell" $postgres; then
        touch "$folder/.complete"
    else
        node_modules=
    fi
}

# need_news: the packages of examples/news, and its TypeScript compiled. Fails when there is no Node.js for it.
need_news() {
    if ! have node || ! have npm; then
        [ -n "${NESTOR_CI:-}" ] && apt_install nodejs npm
    fi
    have npm && [ "$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)" -ge 20 ] || return 1
    local folder=$root/examples/news stamp
    stamp=$(node --version | cat - "$folder/package-lock.json" | sha256sum | cut -c1-16)
    if [ "$(cat "$folder/node_modules/.complete" 2>/dev/null)" != "$stamp" ]; then
        say "fetching the packages of examples/news with npm ($folder/node_modules)"
        npm ci --prefix "$folder" --no-audit --no-fund --silent || return 1
        echo "$stamp" >"$folder/node_modules/.complete"
    fi
    # Compiled unless nothing is newer than the last time: a start does not wait for it each time.
    local built=$folder/dist/.built
    if [ ! -f "$built" ] || [ -n "$(cd "$folder" && find src tsconfig.json node_modules/.complete -newer "$built" -print -quit)" ]; then
        (cd "$folder" && node_modules/.bin/tsc -p .) || return 1
        touch "$built"
    fi
}

# need_mongo_drivers: the Java driver, from Maven Central, and the program of the end-to-end tests with the Go driver. Sets $mongo_java (a
# class path) and $mongo_go, each empty when it cannot be had.
mongo_java_version=5.6.1
need_mongo_drivers() {
    mongo_java= mongo_go=
    local folder=$cache/mongo-java-$mongo_java_version name
    if have java && have mvn; then
        for name in mongodb-driver-sync mongodb-driver-core bson; do
            [ -f "$folder/$name-$mongo_java_version.jar" ] && continue
            say "fetching the Java driver with Maven: $name ($folder)"
            (cd "$cache" && mvn -q -B dependency:copy -Dartifact="org.mongodb:$name:$mongo_java_version" -DoutputDirectory="$folder" >/dev/null) || folder=
            [ -n "$folder" ] || break
        done
        [ -z "$folder" ] || mongo_java=$folder/*
    fi
    local source=$root/tests/e2e/failovers/go go=go stamp program
    have go || go=/usr/local/go/bin/go
    have "$go" || return 0
    stamp=$("$go" version | cat - "$source/main.go" "$source/go.sum" | sha256sum | cut -c1-16)
    program=$cache/mongo-go-$stamp
    if [ ! -f "$program" ]; then
        say "building the program of the tests with the Go driver ($program)"
        (cd "$source" && "$go" build -buildvcs=false -o "$program" .) || return 0
    fi
    mongo_go=$program
}
