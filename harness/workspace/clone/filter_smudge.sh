# What lies in the worktree in place of what is committed of a filtered file, in the sandbox.
# Read in by the command in the session's git configuration, which sets d (the session's folder), lfs (1 for LFS) and
# own() (the person's own command). The content comes on standard input.
t=$(mktemp) && cat >"$t" || exit 1
trap 'rm -f "$t" "$t.n"' EXIT
s=$(sha256sum <"$t") || exit 1
s=${s%% *}
for f in "$d/filters/raw/$s" "$d/filtered/raw/$s"; do if [ -f "$f" ]; then cat "$f"; exit; fi; done
if [ "$lfs" ]; then
  o=$(sed -n 's/^oid sha256:\([0-9a-f]\{64\}\)$/\1/p' "$t" | head -n 1)
  a=${o%"${o#??}"}; b=${o#??}; b=${b%"${b#??}"}
  for f in "$d/filtered/lfs/$a/$b/$o" "$d/lfs-objects/$a/$b/$o"; do
    if [ "$o" ] && [ -f "$f" ]; then cat "$f"; exit; fi
  done
elif own <"$t" >"$t.n"; then
  cat "$t.n"
  exit
fi
cat "$t"
