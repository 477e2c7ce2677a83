"""Mines one file with one tool: `run.py TOOL FILE MIN_COUNT`.

Runs in the environment of the tool and knows nothing of ours. Prints one JSON object: seconds of mining alone, number
of itemsets, peak memory in megabytes.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import pathlib
import resource
import sys
import tempfile
import time


def rows_of(path: str) -> list[list[str]]:
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")  # noqa: SIM115
    with opened as file:
        return [line.split() for line in file if line.strip()]


def comine(path: str, least: int) -> tuple[int, float]:
    from mining.data.loading import load_transactions
    from mining.miner import frequent_itemsets

    data = load_transactions(pathlib.Path(path), "basket")
    start = time.perf_counter()
    return len(frequent_itemsets(data, least)), time.perf_counter() - start


def mlxtend(path: str, least: int) -> tuple[int, float]:
    import pandas
    from mlxtend.frequent_patterns import fpgrowth
    from mlxtend.preprocessing import TransactionEncoder

    rows = rows_of(path)
    encoder = TransactionEncoder()
    frame = pandas.DataFrame(encoder.fit_transform(rows), columns=encoder.columns_)
    start = time.perf_counter()
    # The tool takes a fraction and rounds; half a row below the count gives the count.
    return len(fpgrowth(frame, min_support=(least - 0.5) / len(rows))), time.perf_counter() - start


def pami_fpgrowth(path: str, least: int) -> tuple[int, float]:
    from PAMI.frequentPattern.basic.FPGrowth import FPGrowth

    return _pami(FPGrowth, path, least)


def pami_eclat(path: str, least: int) -> tuple[int, float]:
    from PAMI.frequentPattern.basic.ECLAT import ECLAT

    return _pami(ECLAT, path, least)


def _pami(algorithm: type, path: str, least: int) -> tuple[int, float]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.writelines(" ".join(row) + "\n" for row in rows_of(path))
        file.flush()
        miner = algorithm(iFile=file.name, minSup=least, sep=" ")
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            miner.mine()
        return len(miner.getPatterns()), time.perf_counter() - start


def orange(path: str, least: int) -> tuple[int, float]:
    from orangecontrib.associate.fpgrowth import frequent_itemsets

    rows = rows_of(path)
    number = {item: index for index, item in enumerate(sorted({item for row in rows for item in row}))}
    coded = [sorted({number[item] for item in row}) for row in rows]
    start = time.perf_counter()
    return sum(1 for _ in frequent_itemsets(coded, least)), time.perf_counter() - start


def pyfim(path: str, least: int) -> tuple[int, float]:
    import fim

    rows = rows_of(path)
    start = time.perf_counter()
    return len(fim.eclat(rows, supp=-least, zmin=1)), time.perf_counter() - start


def pyspark(path: str, least: int) -> tuple[int, float]:
    from pyspark.ml.fpm import FPGrowth
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    rows = [(sorted(set(row)),) for row in rows_of(path)]
    frame = session.createDataFrame(rows, ["items"]).cache()
    n_rows = frame.count()
    start = time.perf_counter()
    model = FPGrowth(itemsCol="items", minSupport=(least - 0.5) / n_rows, minConfidence=1.0).fit(frame)
    found = len(model.freqItemsets.collect()), time.perf_counter() - start
    session.stop()
    return found


TOOLS = {
    "comine": comine,
    "mlxtend fpgrowth": mlxtend,
    "PAMI FPGrowth": pami_fpgrowth,
    "PAMI ECLAT": pami_eclat,
    "orange3-associate": orange,
    "pyfim eclat": pyfim,
    "pyspark FPGrowth": pyspark,
}


def main() -> None:
    tool, path, least = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        itemsets, seconds = TOOLS[tool](path, least)
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({"mining_s": seconds, "itemsets": itemsets, "peak_mb": round(peak, 1)}))


if __name__ == "__main__":
    main()
