/** Makes fingerprints of requests. Requests that a model can't distinguish have equal ones. */
import * as Effect from "effect/Effect"
import type { ModelRequest } from "../../core/ChatModel.ts"
import { fromUnknown } from "../../core/Json.ts"
import { callIds, type Message } from "../../core/Message.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import { anonymous } from "../../core/thread/anonymousMessage.ts"
import { sha256 } from "../../support/store/hash.ts"

/** Digests of one list of messages: a run's own list grows at its end. */
interface Chain {
  readonly messages: ReadonlyArray<Message>
  readonly digests: ReadonlyArray<string>
  readonly calls: ReadonlyMap<string, number>
}

const empty: Chain = { messages: [], digests: [], calls: new Map() }

/**
 * Makes a fingerprint function. Of a known list it hashes only the new messages, so a round's work does not grow with
 * the history.
 */
export const makeFingerprints = () => {
  const chains = new WeakMap<ReadonlyArray<Message>, Chain>()

  const digestsOf = Effect.fnUntraced(function* (messages: ReadonlyArray<Message>) {
    const chain = chains.get(messages) ?? empty
    const before = chain.messages.every((message, index) => message === messages[index]) ? chain : empty
    const fresh = messages.slice(before.messages.length)
    const calls = new Map(before.calls)
    const texts = fresh.map((message) => {
      if (message.role === "ai") for (const id of callIds(message)) if (!calls.has(id)) calls.set(id, calls.size)
      return canonical(anonymous(message, (id) => `call ${calls.get(id) ?? "of nobody"}`))
    })
    const digests = [...before.digests, ...(yield* Effect.forEach(texts, sha256))]
    // A new value, since two requests may hash the same list at once.
    chains.set(messages, { messages: [...before.messages, ...fresh], digests, calls })
    return digests
  })

  return (model: string, request: ModelRequest): Effect.Effect<string> =>
    Effect.gen(function* () {
      const { outputSchema, parameters, systemPrompt, toolChoice } = request
      const tools = request.tools.map(({ description, name, parameters, providerOptions }) => ({
        description,
        name,
        parameters,
        ...(providerOptions === undefined ? {} : { providerOptions: fromUnknown(providerOptions) })
      }))
      const messages = yield* digestsOf(request.messages)
      return yield* sha256(
        canonical({ model, systemPrompt, tools, toolChoice, outputSchema: outputSchema ?? null, parameters, messages })
      )
    })
}
