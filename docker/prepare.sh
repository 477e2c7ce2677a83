#!/bin/sh
# Makes the files of compose.yaml: an authority, three organisations with the groceries and the cards of ../examples, a
# coordinator with a job on each. All of them go into the folder `federation` beside this file. It needs Docker and nothing else.
set -eu
cd "$(dirname "$0")"
image=${COMINE_IMAGE:-comine}
shops="north south east"

if [ -e federation ]; then
    echo "prepare.sh: docker/federation exists; move it away to begin anew" >&2
    exit 1
fi
docker image inspect "$image" >/dev/null 2>&1 || docker build --file Dockerfile --tag "$image" ..

# Containers run as the owner of the keys: the caller, or the image's own user where root calls.
user=$(id -u):$(id -g)
if [ "$(id -u)" -eq 0 ]; then user=10001:10001; fi

umask 022
made=$PWD/.federation.$$
trap 'rm -rf "$made"' EXIT
trap 'exit 130' INT TERM
mkdir -m 700 "$made" "$made/authority"
if [ "$(id -u)" -eq 0 ]; then chown "$user" "$made/authority"; fi

pki() {
    command=$1
    shift
    docker run --rm --network none --read-only --cap-drop ALL --user "$user" \
        --volume "$made/authority:/authority" "$image" pki "$command" "$@" --out /authority 2>&1
}

members() {
    printf '[federation]\nname = "shops"\n'
    for member in $shops; do
        printf '\n[[party]]\nname = "%s"\naddress = "%s:7101"\n' "$member" "$member"
    done
}

# The folder $1 gets the key and the certificate of $2.
equip() {
    mkdir -p "$made/$1/etc"
    cp "$made/authority/ca.crt" "$made/authority/$2.crt" "$made/$1/etc/"
    mv "$made/authority/$2.key" "$made/$1/key"
}

pki init
for shop in $shops; do
    pki issue "$shop"
    equip "$shop" "$shop"
    members >"$made/$shop/etc/federation.toml"
    cat >"$made/$shop/etc/party.toml" <<END
[party]
name = "$shop"
listen = "0.0.0.0:7101"
state_dir = "/var/lib/comine/$shop"
federation = "federation.toml"

[tls]
ca = "ca.crt"
certificate = "$shop.crt"
key = "/run/secrets/key"

[[dataset]]
name = "baskets"
kind = "transactions"
source = "/data/baskets.dat"
format = "basket"

[dataset.publish]
rows = $(grep -c '' "../examples/groceries/$shop.dat")

[[dataset]]
name = "cards"
kind = "table"
source = "/data/cards.csv"
format = "csv"
id = "card"

[dataset.publish]
rows = $(grep -c '' "../examples/cards/$shop.csv")

[policy]
approve = "auto"
tasks = ["itemsets", "rules"]
min_parties = 3
min_support = 0.01
min_count = 10
min_insider_k = 2
party_sets = "fixed"
END
    mkdir "$made/$shop/data"
    cp "../examples/groceries/$shop.dat" "$made/$shop/data/baskets.dat"
    cp "../examples/cards/$shop.csv" "$made/$shop/data/cards.csv"
done

pki issue analyst --role coordinator
equip coordinator analyst
mkdir "$made/coordinator/results"
cp ../examples/groceries/job.toml "$made/coordinator/etc/"
cp ../examples/cards/job.toml "$made/coordinator/etc/cards.toml"
{
    members
    printf '\n[coordinator]\nca = "ca.crt"\ncertificate = "analyst.crt"\nkey = "/run/secrets/key"\n'
    printf 'state_dir = "/var/lib/comine/jobs"\n'
} >"$made/coordinator/etc/federation.toml"

if [ "$(id -u)" -eq 0 ]; then chown -R "$user" "$made"; fi
mv "$made" federation
echo "COMINE_USER=$user" >.env
echo "made docker/federation and docker/.env; next, in the folder docker: docker compose up --detach --wait"
