/** OpenAI's Decisions API: an `input`, and a list of questions. Other servers have it, too. */
import type { ProviderAnswer, ProviderImage } from "effect/ai/DecisionModel"
import type { Json, JsonObject } from "effect/Schema"
import type { DecisionCreateParams, DecisionInputPart } from "openai/resources/decisions"
import { defined } from "../json/defined.ts"
import {
  nameAt,
  objectOf,
  objectsOf,
  textIn,
  type DecisionRequest,
  confidenceOf,
  distributionOf,
  type Format,
  measureOf,
  wordsOf
} from "./format.ts"

const home = "https://api.openai.com/v1"

const isPlain = (value: Json): value is JsonObject | ReadonlyArray<JsonObject> =>
  Array.isArray(value) ? objectsOf(value).length === value.length : objectOf(value) !== undefined

const partOf = (state: Json): DecisionInputPart => {
  if (typeof state === "string") return { type: "input_text", text: state }
  // Lists of anything else have no part of their own.
  return isPlain(state)
    ? { type: "input_json", data: Array.isArray(state) ? [...state] : { ...state } }
    : { type: "input_text", text: JSON.stringify(state) }
}

const imageParts = ({ image: { data, mediaType }, reference }: ProviderImage): ReadonlyArray<DecisionInputPart> => [
  { type: "input_text", text: `${reference}:` },
  { type: "input_image", image_url: typeof data === "string" ? `data:${mediaType};base64,${data}` : data.href }
]

const questionOf = (
  decision: DecisionRequest["decisions"][string],
  name: string
): DecisionCreateParams["questions"][number] => {
  const instructions = wordsOf(decision.instructions) ?? ""
  switch (decision._tag) {
    case "Probability": {
      const { criteria } = decision
      const outcomes =
        criteria === undefined ? "" : `\nTrue: ${wordsOf(criteria.true)}\nFalse: ${wordsOf(criteria.false)}`
      return { type: "predicate", name, instructions: `${instructions}${outcomes}` }
    }
    case "Classify": {
      const choices = Object.entries(decision.criteria).map(([value, description]) =>
        defined({ value, description: wordsOf(description) })
      )
      return { type: "choice", name, instructions, choices }
    }
    case "Rate": {
      const levels = decision.criteria.map(({ description, label }) =>
        defined({ label, description: wordsOf(description) })
      )
      return { type: "score", name, instructions, levels }
    }
  }
}

const readAnswer = (answer: JsonObject): ProviderAnswer | undefined => {
  const entries = (key: string) =>
    distributionOf(objectsOf(answer["probabilities"]).map((one) => [textIn(one[key]), one["probability"]]))
  switch (textIn(answer["type"])) {
    case "refusal":
      return { _tag: "Refusal" }
    case "predicate":
      return { _tag: "Probability", probability: measureOf(answer["probability"]) }
    case "choice": {
      const label = textIn(answer["choice"])
      return { _tag: "Classify", label, probabilities: entries("value"), ...confidenceOf(answer) }
    }
    case "score": {
      const rating = measureOf(answer["score"])
      return { _tag: "Rate", rating, probabilities: entries("label"), ...confidenceOf(answer) }
    }
    default:
      return undefined
  }
}

/** The format, at OpenAI or at another server. */
export const makeOpenAiFormat = (baseURL: string | undefined): Format => ({
  provider: "openai",
  baseURL: baseURL ?? home,
  path: "/decisions",
  otherwise: "if it speaks System One (`/systemone`), use DecisionModels.layerSystemOne",
  supportsImages: true,
  write: ({ decisions, images = [], state }, model) =>
    ({
      model,
      input: [{ role: "user", content: [partOf(state), ...images.flatMap(imageParts)] }],
      questions: Object.values(decisions).map((decision, index) => questionOf(decision, nameAt(index)))
    }) satisfies DecisionCreateParams,
  read: (response, { decisions }) => {
    const answers = objectsOf(response["answers"])
    const entries = Object.keys(decisions).flatMap((key, index): ReadonlyArray<[string, ProviderAnswer]> => {
      const [named, another] = answers.filter(({ name }) => name === nameAt(index))
      const [unnamed] = [answers[index]].filter((one) => (one?.["name"] ?? null) === null)
      const own = named ?? unnamed
      const answer = own === undefined || another !== undefined ? undefined : readAnswer(own)
      return answer === undefined ? [] : [[key, answer]]
    })
    return Object.fromEntries(entries)
  }
})
