/** Reads an answer of the provider. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TurnPart } from "../../../src/core/ChatModel.ts"
import * as Message from "../../../src/core/Message.ts"

const Answer = Schema.fromJsonString(Schema.Struct({ text: Schema.String }))

/** Reads the parts of a turn. Fails with a sentence where the answer is not what the protocol says. */
export const decodeAnswer = (text: string): Effect.Effect<ReadonlyArray<TurnPart>, string> =>
  Schema.decodeUnknownEffect(Answer)(text).pipe(
    Effect.mapBoth({
      onFailure: () => "the answer has no text",
      onSuccess: (answer): ReadonlyArray<TurnPart> => [
        { _tag: "TextDelta", text: answer.text },
        { _tag: "TurnDone", message: Message.ai(answer.text) }
      ]
    })
  )
