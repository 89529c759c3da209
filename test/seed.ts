/** The seed of all property tests, so that two runs of a commit try the same values. `TEST_SEED=random` tries new values, and a number repeats an earlier run. */
import * as fc from "fast-check"

const seed = process.env["TEST_SEED"] ?? "1"

if (seed !== "random") fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })
