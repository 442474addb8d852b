#!/usr/bin/env bash
# Writes spellings.json: signature headers in the ways that signers write them, each right or wrong on purpose. The codes
# are computed with openssl alone: HMAC-SHA256 over the timestamp's characters, ".", and the body's bytes.
set -euo pipefail
cd "$(dirname "$0")"
secret=a-secret-of-at-least-24-bytes-5
at=1760000000004
body='{ "id" : "evt_5",\n  "amount": 1.50 }\n'
code() { { printf '%s.' "$1"; printf "$2"; } | openssl dgst -sha256 -mac HMAC -macopt "key:$secret" -binary; }
base64of() { openssl base64 -A; }
hex=$(code "$at" "$body" | od -An -v -tx1 | tr -d ' \n')
HEX=$(printf '%s' "$hex" | tr a-f A-F)
b64=$(code "$at" "$body" | base64of)
bare=${b64%=}
url=$(printf '%s' "$bare" | tr '+/' '-_')
wrong=$(code "$at" "$body x" | od -An -v -tx1 | tr -d ' \n')
other=1760000000005
otherhex=$(code "$other" "$body" | od -An -v -tx1 | tr -d ' \n')
first=1
row() { # name accepted header
  [ $first = 1 ] || printf ',\n'; first=0
  printf '    {"name": "%s", "accepted": %s, "header": "%s"}' "$1" "$2" "$3"
}
{
  printf '{\n  "secret": "%s",\n  "timestamp": "%s",\n  "bodyHex": "%s",\n  "headers": [\n' \
    "$secret" "$at" "$(printf "$body" | od -An -v -tx1 | tr -d ' \n')"
  row 'base64 with a slash, without padding' true "$bare"
  row 'base64url without padding' true "$url"
  row 'unpadded base64 after sha256=' true "sha256=$bare"
  row 'unpadded base64 after v1,' true "v1,$bare"
  row 'hmac-sha256=' true "hmac-sha256=$hex"
  row 'HMAC-SHA256= in capitals' true "HMAC-SHA256=$HEX"
  row 'Hmac-Sha256= in both cases, base64' true "Hmac-Sha256=$b64"
  row 'SHA256= in capitals' true "SHA256=$hex"
  row 'sha256: with a colon' true "sha256:$hex"
  row 'Sha256: with a colon, base64' true "Sha256:$b64"
  row 'V1= in capitals' true "V1=$hex"
  row 't= and v1=' true "t=$at,v1=$hex"
  row 't= and v1= after a comma and a space' true "t=$at, v1=$b64"
  row 't= and v1= after a space' true "t=$at v1=$bare"
  row 't= and a code without a prefix' true "t=$at,$hex"
  row 't= and two v1=, the second right' true "t=$at,v1=$wrong,v1=$hex"
  row 't= and v1, after a space' true "t=$at v1,$b64"
  row 't= and eight codes, the last right' true "t=$at$(printf ',v1=%s' "$wrong" "$wrong" "$wrong" "$wrong" "$wrong" "$wrong" "$wrong" "$hex")"
  row 't= and nine codes' false "t=$at$(printf ',v1=%s' "$hex" "$hex" "$hex" "$hex" "$hex" "$hex" "$hex" "$hex" "$hex")"
  row 't= of the next millisecond, the code of the header' false "t=$other,v1=$hex"
  row 't= of the next millisecond, the code of it' false "t=$other,v1=$otherhex"
  row 't= in seconds' false "t=${at%???},v1=$hex"
  row 't= with a zero before' false "t=0$at,v1=$hex"
  row 't= with a space' false "t= $at,v1=$hex"
  row 'T= in a capital' false "T=$at,v1=$hex"
  row 'ts=' false "ts=$at,v1=$hex"
  row 't= alone' false "t=$at"
  row 't= and a comma' false "t=$at,"
  row 't= twice' false "t=$at,t=$at,v1=$hex"
  row 't= after the code' false "v1=$hex,t=$at"
  row 't= empty' false "t=,v1=$hex"
  row 't= and an element that is not known' false "t=$at,v1=$hex,v0=$hex"
  row 't= of this time and another' false "t=$at,v1=$hex,t=$other"
  row 't= and v1, after a comma' false "t=$at,v1,$b64"
  row 'V1, in a capital' false "V1,$b64"
  row 'hmac-sha256: with a colon' false "hmac-sha256:$hex"
  row 'v1: with a colon' false "v1:$hex"
  row 'hmac_sha256=' false "hmac_sha256=$hex"
  row 'two prefixes' false "hmac-sha256=sha256=$hex"
  row 'a space after the prefix' false "hmac-sha256= $hex"
  row 'sha1=' false "sha1=$hex"
  row 'unpadded base64, a digit short' false "${bare%?}"
  row 'unpadded base64 with its last digit not canonical' false "${bare%?}J"
  printf '\n  ]\n}\n'
} >spellings.json
