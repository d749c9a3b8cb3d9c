# The mirror in docs/changes.md of version 0.1.0, word for word.
import hashlib, json, sys

MEMBERS = ("host", "software", "version", "state", "first_seen")
sha256 = lambda text: hashlib.sha256(text.encode()).hexdigest()

def line(row):
    return json.dumps({m: row[m] for m in MEMBERS}, ensure_ascii=False, separators=(",", ":")) + "\n"

def digest(rows):
    return sha256("".join(line(rows[host]) for host in sorted(rows)))

state, files = sys.argv[1], sys.argv[2:]
text = open(state, encoding="utf-8", newline="\n").read()
rows = {row["host"]: row for row in map(json.loads, text.split("\n")[:-1])}
lines = [json.loads(l) for f in files for l in open(f, encoding="utf-8", newline="\n")]
sections = [l for l in lines if l["change"] == "dump"]
at = [s["time"] for s in sections if s["rows_sha256"] == digest(rows)][-1:]
if not at:
    sys.exit("no section has these rows: take the whole list")
at, skip = at[0], True
for change in lines:
    if change["change"] == "dump":
        skip = change["time"] <= at
        if not skip and (change["since"] != at or not change["complete"]):
            sys.exit("a gap: take the whole list")
        at = at if skip else change["time"]
    elif skip:
        pass
    elif change["change"] in ("appeared", "returned", "changed"):
        rows[change["host"]] = change
    elif change["change"] in ("died", "moved"):
        rows.pop(change["host"], None)
    else:
        for host in [h for h in rows if sha256(h) == change["host_sha256"]]:
            del rows[host]
if digest(rows) != sections[-1]["rows_sha256"]:
    sys.exit("not the newest rows: take the whole list")
open(state, "w", encoding="utf-8", newline="\n").writelines(line(rows[h]) for h in sorted(rows))
