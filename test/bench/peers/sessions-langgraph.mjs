// LangGraph with a checkpointer, as LangChain's `createAgent` uses it.
import { DatabaseSync } from "node:sqlite"
import { MemorySaver } from "@langchain/langgraph"
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite"
import { createAgent } from "langchain"
import { prompt } from "../script.mjs"
import { consume, history, ScriptedChatModel, stepOf, streaming, user } from "./deepagents.mjs"

/**
 * `SqliteSaver` is made for better-sqlite3, which must be compiled. It's given `node:sqlite` instead, which ours stands on
 * too, with what this does otherwise: `undefined` for `NULL`, and two methods. `synchronous` is what ours has.
 */
const sqlite = (file) => {
  const database = new DatabaseSync(file)
  database.exec("PRAGMA synchronous = NORMAL")
  const bound = (values) => values.map((value) => value ?? null)
  return {
    prepare: (sql) => {
      const statement = database.prepare(sql)
      return {
        run: (...values) => statement.run(...bound(values)),
        get: (...values) => statement.get(...bound(values))
      }
    },
    exec: (sql) => database.exec(sql),
    pragma: (text) => database.exec(`PRAGMA ${text}`),
    transaction: (body) => (rows) => {
      database.exec("BEGIN")
      body(rows)
      database.exec("COMMIT")
    }
  }
}

const savers = {
  "lg-none": () => undefined,
  "lg-memory": () => new MemorySaver(),
  "lg-sqlite": (folder) => new SqliteSaver(sqlite(`${folder}/threads.db`))
}

export const open = async (kind, folder) => {
  const checkpointer = savers[kind](folder)
  // Each step is stored before the next begins, as with ours.
  const options = (threadId) =>
    checkpointer === undefined ? streaming : { ...streaming, durability: "sync", configurable: { thread_id: threadId } }
  const agentOf = (script) =>
    createAgent({
      model: new ScriptedChatModel(script),
      tools: [stepOf(script)],
      systemPrompt: prompt,
      ...(checkpointer === undefined ? {} : { checkpointer })
    })

  return {
    fill: async (threadId, length, script) => {
      if (checkpointer === undefined) return
      const messages = [...history(length), user("go")]
      await consume(await agentOf(script).stream({ messages }, options(threadId)))
    },
    make: (script) => {
      const agent = agentOf(script)
      const before = checkpointer === undefined ? history(script.before) : []
      return async (threadId) => consume(await agent.stream({ messages: [...before, user("go")] }, options(threadId)))
    },
    load: (threadId) => checkpointer.getTuple({ configurable: { thread_id: threadId } }),
    close: async () => {}
  }
}
