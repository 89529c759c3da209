/** Facts about Gemini's models, from the table of Google's server. */
import { gemini } from "../servers/cloud.ts"
import type { ModelFacts } from "../servers/Server.ts"
import { factsAt } from "../servers/servers.ts"

/** A model, and whether it holds an answer to a schema while it is offered tools. */
export interface Facts extends Partial<ModelFacts> {
  readonly vision: boolean
  readonly isNative: boolean
}

/** Gives the facts about a model; of an unknown one, those that all have. */
export const factsOf = (model: string): Facts => {
  const name = model.slice(model.lastIndexOf("/") + 1)
  return {
    ...gemini.assumed,
    vision: true,
    ...factsAt(gemini, name),
    isNative: gemini.ways.native?.test(name) === true
  }
}
