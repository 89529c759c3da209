/** Reads the bodies of other protocols: inputs, and answers to requests. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Approval from "../../../core/Approval.ts"
import * as Content from "../../../core/Content.ts"
import { isObject, type Json } from "../../../core/Json.ts"
import { at, brief, problems } from "../../../support/text/issues.ts"
import { RunsError } from "../service.ts"

/** Makes the failure of a body that is wrong. */
export const refuse = (problem: string): RunsError => new RunsError({ reason: "InvalidInput", threadId: "", problem })

/** Reports whether content has no word and no file: a model could answer nothing to it. */
export const isBlank = (content: ReadonlyArray<Content.Block>): boolean =>
  content.every((block) => (block.type === "text" || block.type === "reasoning") && block.text.trim() === "")

/** Refuses the content of the field `input` if it is blank. */
export const checkInput = (content: ReadonlyArray<Content.Block>): Effect.Effect<void, RunsError> =>
  isBlank(content) ? Effect.fail(refuse("input: it has no text and no file; send some words")) : Effect.void

/** Makes a decoder whose failure names the field. */
export const decoder = <T>(schema: Schema.ConstraintDecoder<T>): ((body: unknown) => Effect.Effect<T, RunsError>) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (body) =>
    Effect.mapError(decode(body), ({ issue }) => {
      const first = problems(issue)[0]
      const actual = brief(at(body, first?.keys ?? []))
      const where = first === undefined || first.path === "" ? "the body" : first.path
      return refuse(`${where}: expected ${first?.expected ?? "a valid value"}, found ${actual}`)
    })
}

/** An answer to a request, as clients give it: yes or no, and words or a value. */
export interface Answer {
  readonly isApproved: boolean
  readonly text?: string | undefined
  readonly value?: Json | undefined
  readonly arguments?: Json | undefined
}

const readJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** Makes the decision of an answer, if the request allows it. */
export const decisionOf = (request: Approval.Request, answer: Answer): Approval.Decision | undefined => {
  const can = (choice: Approval.Choice): boolean => request.allow.includes(choice)
  const { arguments: edited, isApproved, text, value } = answer
  if (!isApproved) {
    return can("reject")
      ? Approval.reject(request, text)
      : can("respond")
        ? Approval.respond(request, text ?? "")
        : undefined
  }
  if (edited !== undefined && isObject(edited) && can("edit")) return Approval.edit(request, edited)
  const isQuestion = request.answer !== undefined || !can("approve")
  if (isQuestion && can("respond")) {
    if (value !== undefined) return Approval.respond(request, value)
    const wanted = request.answer?.["type"]
    const decoded = wanted === undefined || wanted === "string" ? Option.none() : readJson(text ?? "")
    return Approval.respond(
      request,
      Option.getOrElse(decoded, () => text ?? "")
    )
  }
  return can("approve") ? Approval.approve(request) : undefined
}

const dataUrl = /^data:([\w.+/-]{1,127})(?:;[\w.+=-]{1,64})*;base64,([\w+/=]*)$/u

/** Reads a file by its URL: data, or an address of the web. */
export const readFile = (
  url: string,
  mediaType: string | undefined,
  name: string | undefined
): Effect.Effect<Content.Block, RunsError> => {
  const [, type, data] = dataUrl.exec(url) ?? []
  const isWeb = URL.canParse(url) && /^https?:$/u.test(new URL(url).protocol)
  if (data === undefined && !isWeb) return Effect.fail(refuse("a file: expected a data URL (base64) or an http(s) URL"))
  const source =
    data === undefined ? { url } : { base64: data, mimeType: mediaType ?? type ?? "application/octet-stream" }
  const isImage = (mediaType ?? type ?? "").startsWith("image/")
  return Effect.succeed(isImage ? Content.image(source) : Content.file({ ...source, name }))
}
