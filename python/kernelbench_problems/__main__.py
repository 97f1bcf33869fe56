"""The helper of `kernelbench problems import` and `export`: `python -I __main__.py read|write|fetch FROM TO`.

read    a dataset (a .parquet file, a folder of them, or what save_to_disk wrote) → rows, a JSON object a line
write   such rows → parquet: one file, or a folder with one file a level (split)
fetch   NAME of a dataset on the Hugging Face hub → a folder; the one command that uses the network

`read` and `write` run in a sandbox: the files may be a stranger's. Exit status 2, and one sentence on stderr,
when it cannot be done.
"""
import json
import os
import sys

# Of a row; what is larger is no problem file.
MAX_CODE = 4 << 20
COLUMNS = "code", "level", "name", "problem_id"


def main(argv):
    commands = {"read": read, "write": write, "fetch": fetch}
    if len(argv) != 3 or argv[0] not in commands:
        return fail("usage: read|write|fetch FROM TO")
    try:
        commands[argv[0]](argv[1], argv[2])
    except ImportError as error:
        return fail(f"{sys.executable} lacks {error.name or error}: run `{sys.executable} -m pip install "
                    "-r requirements.txt`")
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        return fail(f"{argv[1]}: {text[:500]}")
    return 0


def fail(sentence):
    print(sentence, file=sys.stderr)
    return 2


def read(source, target):
    """Writes each row of each split as {"row": where, "split", and the columns that it has}."""
    with open(target, "w", encoding="utf-8") as out:
        for split, batches in splits(source):
            number = 0
            for batch in batches:
                for row in batch:
                    plain = {name: row[name] for name in COLUMNS if isinstance(row.get(name), (str, int))}
                    if len(plain.get("code", "")) > MAX_CODE:
                        plain["code"] = ""
                    out.write(json.dumps({"row": f"{split}[{number}]", "split": split, **plain}) + "\n")
                    number += 1


def splits(source):
    """Yields (the split's name, its rows in batches)."""
    if os.path.isfile(source):
        yield os.path.basename(source).split("-")[0].removesuffix(".parquet"), parquet_rows(source)
        return
    if any(os.path.exists(os.path.join(source, name)) for name in ("dataset_dict.json", "state.json")):
        yield from saved_splits(source)
        return
    found = sorted(os.path.join(folder, name) for folder, _, names in os.walk(source) for name in names
                   if name.endswith(".parquet"))
    if not found:
        raise ValueError("there is no .parquet file in it, and it is not what save_to_disk writes")
    for path in found:
        # level_1-00000-of-00001.parquet
        yield os.path.basename(path).removesuffix(".parquet").split("-")[0], parquet_rows(path)


def parquet_rows(path):
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    if "code" not in file.schema_arrow.names:
        raise ValueError(f"{os.path.basename(path)} has no column `code`; its columns are "
                         + ", ".join(file.schema_arrow.names))
    columns = [name for name in COLUMNS if name in file.schema_arrow.names]
    for batch in file.iter_batches(batch_size=64, columns=columns):
        yield batch.to_pylist()


def saved_splits(source):
    import datasets

    loaded = datasets.load_from_disk(source)
    for name, split in loaded.items() if isinstance(loaded, dict) else [("rows", loaded)]:
        if "code" not in split.column_names:
            raise ValueError(f"it has no column `code`; its columns are {', '.join(split.column_names)}")
        yield str(name), ([row] for row in split)


def write(source, target):
    """Writes the rows as `target`, a .parquet file, or into `target`, a folder: one file a level."""
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([("code", pyarrow.string()), ("level", pyarrow.int64()), ("name", pyarrow.string()),
                             ("problem_id", pyarrow.int64())])
    with open(source, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    if target.endswith(".parquet"):
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema), target)
        return
    os.makedirs(os.path.join(target, "data"), exist_ok=True)
    for level in sorted({row["level"] for row in rows}):
        mine = pyarrow.Table.from_pylist([row for row in rows if row["level"] == level], schema)
        parquet.write_table(mine, os.path.join(target, "data", f"level_{level}-00000-of-00001.parquet"))


def fetch(name, target):
    """Downloads the files of the dataset as they are: they are read elsewhere."""
    from huggingface_hub import snapshot_download

    snapshot_download(name, repo_type="dataset", local_dir=target,
                      allow_patterns=["*.parquet", "*.arrow", "*.json"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
