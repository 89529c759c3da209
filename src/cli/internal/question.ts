/**
 * Asks a person at the terminal. Each question has a terminal of its own, which is as before once the question is over:
 * that of the program leaves its mode for keys some milliseconds later, when a chat may read keys already.
 */
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import * as Prompt from "effect/cli/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export const askPerson = <A>(prompt: Prompt.Prompt<A>) =>
  Effect.provide(Prompt.run(prompt), Layer.fresh(NodeTerminal.layer))
