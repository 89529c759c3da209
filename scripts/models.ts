/**
 * Writes the facts about models, `src/models/internal/facts/models.json`, from the price file of litellm (MIT) and from
 * `scripts/models/corrections.json`, which wins and gives a reason for each of its rows. The corrections stand in the file,
 * too: they win over a source that is read later.
 *
 * ```sh
 * pip download litellm --no-deps && unzip litellm-*.whl
 * node scripts/models.ts litellm/model_prices_and_context_window_backup.json 1.110.2   # writes the file
 * node scripts/models.ts litellm/model_prices_and_context_window_backup.json --check   # fails if it would differ
 * ```
 */
import { readFileSync, writeFileSync } from "node:fs"
import * as Schema from "effect/Schema"
import { Row, writeCatalogue } from "../src/models/internal/facts/catalogue.ts"
import { fromLitellm, Source } from "../src/models/internal/facts/litellm.ts"

const target = "src/models/internal/facts/models.json"

const Corrections = Schema.Record(
  Schema.String,
  Schema.Record(Schema.String, Schema.Struct({ why: Schema.String, ...Row.fields }))
)

const readText = (path: string) => readFileSync(path, "utf8")
const [, , path = "", version = ""] = process.argv
const isCheck = version === "--check"
const source = Schema.decodeUnknownSync(Schema.fromJsonString(Source))(readText(path))
const corrections = Schema.decodeUnknownSync(Schema.fromJsonString(Corrections), { onExcessProperty: "error" })(
  readText("scripts/models/corrections.json")
)

const own = Object.fromEntries(
  Object.entries(corrections).map(([provider, rows]) => [
    provider,
    Object.fromEntries(Object.entries(rows).map(([id, { why: _, ...row }]) => [id, row]))
  ])
)
const before = JSON.parse(readText(target))
const asOf = isCheck ? before.asOf : new Date().toISOString().slice(0, 10)
const from = isCheck ? before.source : `litellm ${version} (MIT), model_prices_and_context_window_backup.json`
const providers = fromLitellm(source, corrections)
const text = writeCatalogue(from, { asOf, providers }, { corrections: own })
if (isCheck && text !== readText(target)) throw new Error(`${target} differs from its source and corrections`)
writeFileSync(target, text)
const count = Object.values(providers).reduce((sum, rows) => sum + Object.keys(rows).length, 0)
console.log(`models: ${count} rows, ${text.length} bytes`)
