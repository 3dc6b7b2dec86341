# What is committed in place of the content of a filtered file, in the sandbox.
# Read in by the command in the session's git configuration, which sets d (the session's folder), lfs (1 for LFS) and
# own() (the person's own command). The content comes on standard input.
t=$(mktemp) && cat >"$t" || exit 1
trap 'rm -f "$t" "$t.n"' EXIT
s=$(sha256sum <"$t") || exit 1
s=${s%% *}
[ -s "$t" ] || exit 0
if [ -f "$d/filters/known/$s" ]; then cat "$d/filters/known/$s"; exit; fi
if [ -h "$d/filters/raw/$s" ] || [ -f "$d/filters/raw/$s" ] || [ -f "$d/filtered/raw/$s" ]; then cat "$t"; exit; fi
mkdir -p "$d/filtered/new" "$d/filtered/raw" || exit 1
if [ "$lfs" ]; then
  if [ "$(head -n 1 "$t" | tr -d '\000')" = 'version https://git-lfs.github.com/spec/v1' ]; then cat "$t"; exit; fi
  a=${s%"${s#??}"}; b=${s#??}; b=${b%"${b#??}"}
  o=$d/filtered/lfs/$a/$b
  mkdir -p "$o" && cp "$t" "$o/.$s.$$" && mv "$o/.$s.$$" "$o/$s" || exit 1
  printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$s" "$(($(wc -c <"$t")))" >"$t.n"
elif ! own <"$t" >"$t.n"; then
  echo "watchfloor: its filter does not work in the sandbox, so this file cannot be committed here: leave its change" \
    "uncommitted and say so at the end; the person's own git brings it through the filter" >&2
  exit 1
else
  n=$(sha256sum <"$t.n")
  cp "$t" "$d/filtered/raw/.${n%% *}.$$" && mv "$d/filtered/raw/.${n%% *}.$$" "$d/filtered/raw/${n%% *}"
fi
cp "$t.n" "$d/filtered/new/.$s.$$" && mv "$d/filtered/new/.$s.$$" "$d/filtered/new/$s"
cat "$t.n"
