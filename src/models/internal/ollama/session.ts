/** Sessions with an Ollama server. */
import * as Effect from "effect/Effect"
import type { ModelSession } from "../../../core/ChatModel.ts"
import { makeSessions } from "../turn/session.ts"
import { makeJsonWriter } from "../wire/jsonText.ts"
import { makeWarner } from "../wire/warned.ts"
import type { Client } from "./client.ts"
import { makeDecoder } from "./decode.ts"
import { makeWriter, type Settings } from "./request.ts"

/** Makes the opener of sessions. */
export const makeOllamaSessions = (client: Client, settings: Settings): Effect.Effect<ModelSession> => {
  const { abilities, model, provider } = settings
  const warnOfTools = makeWarner("tools", (name) => `${name} can't call tools: its server says so`)
  return makeSessions(
    settings,
    Effect.sync(() => {
      const write = makeWriter(settings)
      const writeJson = makeJsonWriter()
      return (request, makeId) =>
        Effect.map(Effect.fromResult(write(request)), ({ body, damaged, forced, names, unheard }) => {
          const origin = client.originOf(body)
          const context = { origin, names, forced, makeId }
          const isUnable = abilities !== undefined && !abilities.has("tools") && "tools" in body
          return {
            events: client.chat(origin, writeJson(body)),
            makeDecoder: (sink) => makeDecoder(context, sink),
            damaged,
            unheard,
            warnings: [warnOfTools(isUnable ? [`${provider}/${model}`] : [])]
          }
        })
    })
  )
}
