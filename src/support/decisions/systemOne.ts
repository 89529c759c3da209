/**
 * The System One API (`POST /systemone`): a `state`, and a record of questions. TypeSafe defined it, and llama.cpp,
 * vLLM and others have it, too.
 */
import type { ProviderAnswer } from "effect/ai/DecisionModel"
import type { Json, JsonObject } from "effect/Schema"
import { valueAt } from "../json/valueAt.ts"
import {
  nameAt,
  objectOf,
  textIn,
  type DecisionRequest,
  confidenceOf,
  distributionOf,
  type Format,
  measureOf
} from "./format.ts"

type One = DecisionRequest["decisions"][string]

const questionOf = ({ instructions, ...decision }: One): object => {
  switch (decision._tag) {
    case "Probability":
      return { type: "noul", instructions, criteria: decision.criteria }
    case "Classify":
      return { type: "choice", instructions, criteria: decision.criteria }
    case "Rate":
      return { type: "score", instructions, criteria: decision.criteria.map(({ description }) => description) }
  }
}

/** States are texts, objects or lists. */
const stateOf = (state: Json): Json => (typeof state === "object" && state !== null ? state : textOf(state))

const textOf = (state: Json): string => (typeof state === "string" ? state : JSON.stringify(state))

/** The probabilities of levels have the number of the level as their key, from `0`. */
const byLevel = (levels: ReadonlyArray<{ readonly label: string }>, probabilities: JsonObject) =>
  distributionOf(
    levels.flatMap(({ label }, index) =>
      Object.hasOwn(probabilities, String(index)) ? [[label, probabilities[String(index)]] as const] : []
    )
  )

const readAnswer = (answer: JsonObject, decision: One): ProviderAnswer | undefined => {
  const probabilities = objectOf(answer["probabilities"])
  switch (textIn(answer["type"])) {
    case "noul":
      return { _tag: "Probability", probability: measureOf(answer["noul"]) }
    case "choice": {
      const label = textIn(answer["choice"])
      const all = probabilities === undefined ? undefined : distributionOf(Object.entries(probabilities))
      return { _tag: "Classify", label, probabilities: all, ...confidenceOf(answer) }
    }
    case "score": {
      const levels = decision._tag === "Rate" ? decision.criteria : []
      const all = probabilities === undefined ? undefined : byLevel(levels, probabilities)
      return { _tag: "Rate", rating: measureOf(answer["score"]), probabilities: all, ...confidenceOf(answer) }
    }
    default:
      return undefined
  }
}

/** The format, at a server. */
export const makeSystemOneFormat = (baseURL: string): Format => ({
  provider: "systemone",
  baseURL,
  path: "/systemone",
  otherwise: "if it speaks OpenAI's Decisions API (`/decisions`), use DecisionModels.layerOpenAi",
  write: ({ decisions, state }, model) => ({
    model,
    state: stateOf(state),
    questions: Object.fromEntries(Object.values(decisions).map((one, index) => [nameAt(index), questionOf(one)]))
  }),
  read: (response, { decisions }) => {
    const answers = objectOf(response["answers"]) ?? {}
    const entries = Object.entries(decisions).flatMap(
      ([key, decision], index): ReadonlyArray<[string, ProviderAnswer]> => {
        const own = objectOf(valueAt(answers, nameAt(index)))
        const answer = own === undefined ? undefined : readAnswer(own, decision)
        return answer === undefined ? [] : [[key, answer]]
      }
    )
    return Object.fromEntries(entries)
  }
})
