/**
 * Two tenants on one index in Postgres: each has a namespace, the program chooses it for a request, and no argument of a
 * tool can name the other one. It runs on the Postgres of DATABASE_URL, with pgvector, or on one inside this process.
 */
import assert from "node:assert/strict"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Config, Effect, Layer, Redacted, Stream } from "effect"
import { Agent, type Message } from "effect-deepagents"
import { HashingEmbedding, Indexer, Rag, RagIndex } from "effect-deepagents/rag"
import * as PostgresIndex from "effect-deepagents/rag/PostgresIndex"
import { TestChatModel } from "effect-deepagents/testing"
import { onPglite, pglite } from "../test/servers/pglite.ts"
import { main } from "./shared/run.ts"

const contracts = {
  acme: { id: "contract", title: "Contract of Acme", text: "Acme pays 900 a month, and may cancel in May." },
  globex: { id: "contract", title: "Contract of Globex", text: "Globex pays 1,200 a month, and can't cancel." }
}

type Tenant = keyof typeof contracts

const spaceOf = (tenant: Tenant) =>
  RagIndex.RagIndex.use((index) => index.space(`tenant/${tenant}`, HashingEmbedding.model()))

const ask = Effect.fnUntraced(function* (tenant: Tenant, question: string) {
  const agent = Agent.make({
    name: "lawyer",
    prompt: "You answer from the contracts.",
    tools: Rag.make({ space: yield* spaceOf(tenant) })
  })
  return yield* Agent.run(agent, question)
})

// A model that was talked into looking at somebody else's contract.
const script = TestChatModel.script([
  TestChatModel.calls([
    { name: "rag_search", arguments: { query: "What does Globex pay?", namespace: "tenant/globex", top_k: 20 } },
    { name: "rag_fetch_chunk", arguments: { chunk_id: "contract::0", chunks_below: 10 } },
    { name: "rag_list_sources", arguments: {} }
  ]),
  "I only see the contract of Acme."
])

const textOf = (messages: ReadonlyArray<Message.Message>) =>
  JSON.stringify(messages.filter(({ role }) => role === "tool"))

const program = Effect.gen(function* () {
  for (const [tenant, contract] of Object.entries(contracts)) {
    const space = yield* spaceOf(tenant === "acme" ? "acme" : "globex")
    yield* Stream.runDrain(Indexer.run(space, Stream.make(contract)))
  }
  const result = yield* ask("acme", "What does Globex pay?")
  console.log(result.text)
  assert.match(textOf(result.messages), /Acme pays 900/)
  assert.doesNotMatch(textOf(result.messages), /1,200/)
})

const database = Layer.unwrap(
  Effect.gen(function* () {
    const url = yield* Config.withDefault(Config.Redacted("DATABASE_URL"), Redacted.make(""))
    return Redacted.value(url) === "" ? onPglite(yield* pglite) : PgClient.layer({ url })
  })
)

const index = Layer.provide(PostgresIndex.layer, database)

main(program.pipe(Effect.provide([index, HashingEmbedding.layer(), script])))
