/** Fingerprints of requests. Equivalent requests have equal fingerprints. */
import * as Effect from "effect/Effect"
import type { ModelRequest } from "../../../core/ChatModel.ts"
import { fromUnknown, type Json } from "../../../core/Json.ts"
import { callIds, type Message } from "../../../core/Message.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { anonymous } from "../../../core/thread/anonymousMessage.ts"
import { sha256 } from "../../../support/store/hash.ts"
import type { Address } from "./format.ts"

/** The identity of a request, with the values behind its hashes. */
export interface Fingerprint {
  readonly key: string
  readonly address: Address
  readonly values: ReadonlyMap<string, Json>
}

/** 64 bits of SHA-256 distinguish the few thousand values of a file. */
const hashOf = (text: string): Effect.Effect<string> => Effect.map(sha256(text), (hash) => hash.slice(0, 16))

const numbersOf = (messages: ReadonlyArray<Message>): ReadonlyMap<string, number> => {
  const numbers = new Map<string, number>()
  for (const message of messages) {
    if (message.role !== "ai") continue
    for (const id of callIds(message)) if (!numbers.has(id)) numbers.set(id, numbers.size + 1)
  }
  return numbers
}

/** Makes the fingerprint of a redacted request. It ignores message ids, usage, labels, cache hints and purpose. */
export const make = (request: ModelRequest, scope: string): Effect.Effect<Fingerprint> =>
  Effect.gen(function* () {
    const values = new Map<string, Json>()
    const store = (value: Json) =>
      Effect.map(hashOf(canonical(value)), (hash) => {
        values.set(hash, value)
        return hash
      })
    const numbers = numbersOf(request.messages)
    const address: Address = {
      ...(scope === "" ? {} : { scope }),
      systemPrompt: yield* store(request.systemPrompt),
      tools: yield* Effect.forEach(request.tools, ({ description, name, parameters, providerOptions }) =>
        store({
          name,
          description,
          parameters,
          ...(providerOptions === undefined ? {} : { providerOptions: fromUnknown(providerOptions) })
        })
      ),
      toolChoice: request.toolChoice,
      outputSchema: request.outputSchema === undefined ? null : yield* store(request.outputSchema),
      parameters: yield* store(request.parameters),
      messages: yield* Effect.forEach(request.messages, (message) =>
        store(anonymous(message, (id) => `call ${numbers.get(id) ?? "of nobody"}`))
      )
    }
    return { key: yield* hashOf(canonical({ ...address })), address, values }
  })
