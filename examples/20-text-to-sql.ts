/**
 * A text-to-SQL agent on a real SQLite file. Three things keep the data safe: the connection is read-only, the tool
 * takes one SELECT at a time, and it gives a bounded number of rows. (A statement that takes hours would hold this
 * process for hours: for the questions of strangers, put the database into a worker that can be ended.)
 */
import assert from "node:assert/strict"
import { DatabaseSync } from "node:sqlite"
import { Console, Context, Effect, FileSystem, Layer, Path, Schema } from "effect"
import { Agent, Message, Tool, ToolCall, ToolError } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { TestChatModel } from "effect-deepagents/testing"
import { chooseModel } from "./shared/model.ts"
import { main } from "./shared/run.ts"

/** The database, opened so that nothing can be written. The tools below need it, and so does the agent's type. */
class Shop extends Context.Service<Shop, DatabaseSync>()("examples/Shop") {}

const shop = (file: string) =>
  Layer.effect(
    Shop,
    Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(file, { readOnly: true })),
      (database) => Effect.sync(() => database.close())
    )
  )

const maxRows = 50

/** What SQLite has against a statement goes to the model, which can mend it. */
const rowsOf = (sql: string) =>
  Shop.use((database) =>
    Effect.try({
      try: () => {
        const rows: Array<unknown> = []
        for (const row of database.prepare(sql).iterate()) if (rows.push(row) > maxRows) break
        return rows
      },
      catch: (cause) => ToolError.make(cause instanceof Error ? cause.message : String(cause))
    })
  )

const schema = Tool.make("schema", {
  description: "Shows the tables and their columns, as SQL.",
  parameters: {},
  annotations: { readOnly: true },
  execute: () => Effect.map(rowsOf("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"), JSON.stringify)
})

const query = Tool.make("query", {
  description: `Runs one SELECT statement and gives its rows as JSON, at most ${maxRows}.`,
  parameters: { sql: Schema.String },
  annotations: { readOnly: true },
  execute: Effect.fnUntraced(function* ({ sql }) {
    const statement = sql.trim().replace(/;$/, "")
    if (!/^(SELECT|WITH)\b/i.test(statement) || statement.includes(";")) {
      return yield* Effect.fail(ToolError.make("Only a single SELECT is run here. Nothing can be changed."))
    }
    const rows = yield* rowsOf(statement)
    const more = rows.length > maxRows ? `\nThere are more than ${maxRows} rows: aggregate, or add a LIMIT.` : ""
    return JSON.stringify(rows.slice(0, maxRows)) + more
  })
})

const analyst = DeepAgent.make({
  name: "analyst",
  prompt: "You answer questions about a shop by its database. Look at the schema first.",
  tools: [schema, query],
  files: ["read_file", "grep"],
  generalPurpose: false,
  output: Schema.Struct({ answer: Schema.String, sql: Schema.String })
})
//    ^? Agent<{ readonly answer: string; readonly sql: string }, ModelError, ChatModel | Backend | Shop>

const best =
  "SELECT c.name, sum(o.euros) AS euros FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.id ORDER BY euros DESC LIMIT 1"

const ask = (sql: string) => TestChatModel.calls([{ name: "query", arguments: { sql } }])

const script = TestChatModel.script([
  TestChatModel.calls([{ name: "schema", arguments: {} }]),
  ask("DELETE FROM orders"),
  ask("SELECT total FROM orders"),
  ask(best),
  JSON.stringify({ answer: "Grace spent most: € 129.", sql: best })
])

/** A database in a file of its own, gone when the example ends. */
const seeded = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(yield* fs.makeTempDirectoryScoped({ prefix: "text-to-sql-" }), "shop.db")
  const database = new DatabaseSync(file)
  database.exec(`
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers, euros REAL, day TEXT);
    INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace');
    INSERT INTO orders VALUES (1, 1, 80, '2026-03-01'), (2, 2, 99, '2026-03-02'), (3, 2, 30, '2026-03-09');
  `)
  database.close()
  return file
})

const program = Effect.gen(function* () {
  const layers = [MemoryBackend.layer(), shop(yield* seeded)] as const
  const model = yield* chooseModel(script)
  const result = yield* Agent.run(analyst, "Who is our best customer?").pipe(Effect.provide([...layers, model.layer]))
  for (const message of result.messages) {
    if (message.role === "ai") {
      for (const call of message.toolCalls) {
        yield* Console.log(`→ ${call.name} ${ToolCall.describeArguments(call.arguments)}`)
      }
    }
    if (message.role === "tool") yield* Console.log(`${message.isError ? "✗" : "✓"} ${Message.text(message)}`)
  }
  // Typed, whether the model has a mode for it or answers by a tool.
  const { answer, sql } = result.output
  yield* Console.log(`\n${answer}\n${sql}`)

  if (!model.isScripted) return
  const refused = result.messages.flatMap((message) => (message.role === "tool" ? [message.isError] : []))
  assert.deepEqual(refused, [false, true, true, false])
  assert.equal(sql, best)
})

main(program)
