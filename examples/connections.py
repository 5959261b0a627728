"""Network connections for two examples: service, protocol, flag, bytes, and the label to learn."""

from pyspark.sql import functions as F

SCHEMA = "service string, label string, protocol string, flag string, bytes long"


def connections(spark, path=None, lines=20_000):
    """From a file, or made up: most are http and normal, some are attacks that look different."""
    if path is not None:
        return spark.read.csv(path, sep="\t", schema=SCHEMA, quote="").limit(lines)
    attack = "case when u < 0.1 then 'flood' when u < 0.15 then 'probe' else 'normal' end"
    service = "case when label = 'flood' then 'echo' when v < 0.8 then 'http' else 'mail' end"
    return (
        spark.range(lines)
        .selectExpr("id", "rand(1) as u", "rand(2) as v")
        .selectExpr("id", "v", f"{attack} as label")
        .selectExpr(
            f"{service} as service",
            "label",
            "case when label = 'flood' or v > 0.97 then 'icmp' else 'tcp' end as protocol",
            "case when label = 'probe' and v < 0.9 then 'S0' else 'SF' end as flag",
            "cast(case when label = 'flood' then 1032 else 100 + 2000 * v end as long) as bytes",
        )
    )


def split(rows):
    """Four fifths to learn from, one fifth to test on; which row goes where never changes."""
    bucket = F.pmod(F.xxhash64(F.monotonically_increasing_id()), F.lit(5))
    marked = rows.withColumn("bucket", bucket).cache()
    return marked.where("bucket > 0").drop("bucket"), marked.where("bucket = 0").drop("bucket")
