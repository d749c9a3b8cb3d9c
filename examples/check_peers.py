"""Sorts the names that a server knows by what a census knows about them.

    python3 check_peers.py https://census.example peers.json
    curl -fsS https://my.example/api/v1/instance/peers | python3 check_peers.py https://census.example -

Prints how many names each group has; --names GROUP prints the names of one group, and --purge
commands for Mastodon's tootctl. The file is an API's answer, lines, or CSV with names in its first
column. The census learns no name, because the program loads its file of all answers.
Exit codes: 0: done; 1: the list or the answers cannot be read; 2: wrong usage.
"""
import argparse, hashlib, http.client, json, re, struct, sys, urllib.error, urllib.request

ALL_MAX, TEXT_MAX, LINE_MAX, NAMES_MAX = 64 << 20, 16 << 20, 64 << 10, 250_000
GROUPS = {word: word for word in ("up", "failing", "gone", "never", "moved", "withheld")}
GROUPS.update(moved_to_listed="moved", waiting="unchecked", refuses="unchecked", unknown="unknown")
OLD = {"gone": 4, "never": 13}  # Months and weeks after which 90 days are over for certain.
LABEL = re.compile(r"(xn--|(?!..--))[a-z0-9]([a-z0-9-]*[a-z0-9])?")
ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, http.client.HTTPException)


def read(opened, most):
    with opened as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"the file has more than {most} bytes")
    return data


def load(census):
    """The salt, the classes and the entries of the newest answers."""
    for is_last in (False, True):
        index = json.loads(read(urllib.request.urlopen(f"{census}/why/index.json", timeout=60), LINE_MAX))
        salt, size = index["salt"], index["all_bytes"]
        if not re.fullmatch("[0-9a-f]{32}", salt) or not 0 < size <= ALL_MAX:
            raise ValueError("the index is of another version")
        try:
            data = read(urllib.request.urlopen(f"{census}/why/{salt}/all.bin", timeout=60), size)
            break
        except urllib.error.URLError as error:
            # A new publication removed the file after the index was read.
            if is_last or getattr(error, "code", 404) != 404:
                raise
    line, _, entries = data.partition(b"\n")
    header = json.loads(line[:LINE_MAX])
    classes = [tuple((name + " ").split(" ")[:2]) for name in header["classes"]]
    is_known = header["entry_bytes"] == 10 and {word for word, _ in classes} <= GROUPS.keys()
    if len(data) != size or len(entries) % 10 or not is_known:
        raise ValueError("the file of all answers is damaged or of another version")
    return salt, classes, entries


def canonical(name):
    """The name as the census writes it; None if it is not valid."""
    name = re.sub(r"\.$", "", name.strip().lower())
    try:
        name = name if name.isascii() or len(name) > 253 else name.encode("idna").decode()
    except UnicodeError:
        return None
    is_name = len(name) <= 253 and "." in name and not re.fullmatch("[0-9.]+", name)
    return name if is_name and all(len(label) <= 63 and LABEL.fullmatch(label) for label in name.split(".")) else None


def names_in(text):
    """The valid names, each once, and the number of others."""
    text = text.lstrip("\ufeff").strip()
    if text[:1] in ("[", "{"):
        value = json.loads(text)
        if isinstance(value, dict):
            value = value["federated_instances"]["linked"] if "federated_instances" in value else value["instances"]
        items = [item.get("domain", item.get("host")) if isinstance(item, dict) else item for item in value]
    else:
        items = [re.split("[,;\t]", line)[0].replace('"', "").strip() for line in text.split("\n")]
        items = [item for item in items if item and not item.startswith("#")]
    if len(items) > NAMES_MAX:
        raise ValueError(f"the list has more than {NAMES_MAX} names")
    names = [canonical(item) if isinstance(item, str) else None for item in items]
    return list(dict.fromkeys(name for name in names if name)), names.count(None)


def look_up(names, salt, classes, entries):
    keys = {hashlib.sha256((salt + name).encode()).digest()[:8]: name for name in names}
    found = ((keys[key], (*classes[kind], age)) for key, kind, age in struct.iter_unpack("8sBB", entries) if key in keys)
    return {**dict.fromkeys(names, ("unknown", "", 0)), **dict(found)}


def purge_lines(answers):
    names = [name for name, (word, found, age) in answers.items() if found == "no_such_name" and age >= OLD.get(word, 256)]
    return ["bin/tootctl domains purge --dry-run " + " ".join(names[at : at + 50]) for at in range(0, len(names), 50)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("census", help="its address")
    parser.add_argument("file", help="the list of peers; - for the standard input")
    parser.add_argument("--names", metavar="GROUP", choices=sorted(set(GROUPS.values())))
    parser.add_argument("--purge", action="store_true")
    asked = parser.parse_args()
    try:
        names, unusable = names_in(read(open(0 if asked.file == "-" else asked.file, "rb"), TEXT_MAX).decode())
        answers = look_up(names, *load(asked.census.rstrip("/")))
    except ERRORS as error:
        sys.exit(f"check_peers.py: the list or the answers cannot be read: {error!r}")
    members = {group: [name for name in answers if GROUPS[answers[name][0]] == group] for group in GROUPS.values()}
    counts = [f"{group} {len(names)}" for group, names in members.items()] + [f"unusable {unusable}"]
    for line in purge_lines(answers) if asked.purge else members[asked.names] if asked.names else counts:
        print(line)


if __name__ == "__main__":
    main()
