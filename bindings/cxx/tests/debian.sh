# Packages of Debian's pool, for tests that source this file. $work is the directory of all files;
# `skip CAUSE` is the caller's.

# apt with its own lists, so that the system's stay as they are.
apt() {
    local key=/usr/share/keyrings/debian-archive-keyring.gpg kind
    mkdir -p "$work/lists/partial"
    for kind in deb deb-src; do
        echo "$kind [signed-by=$key] http://deb.debian.org/debian bookworm main"
    done >"$work/sources.list"
    apt-get -q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" -o APT::Sandbox::User= "$@"
}
