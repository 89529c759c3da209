/** Bedrock's additions to the Messages API: its paths, AWS's event stream with real checksums, its errors; and a second, independent computation of AWS's signature. */
import { createHash, createHmac } from "node:crypto"
import { crc32 } from "node:zlib"
import { cutBytes, type Event, type Recorded, type Reply, serveBy } from "./anthropic.ts"
import { bodyViolations } from "./anthropicRules.ts"

const encoder = new TextEncoder()

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

/** One frame: lengths, their checksum, headers (all strings), payload, checksum of all of it. */
export const frame = (headers: Readonly<Record<string, string>>, payload: string): Buffer => {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const key = encoder.encode(name)
      const text = Buffer.from(value, "utf8")
      const length = Buffer.alloc(2)
      length.writeUInt16BE(text.length)
      return Buffer.concat([Buffer.of(key.length), key, Buffer.of(7), length, text])
    })
  )
  const body = Buffer.from(payload, "utf8")
  const prelude = Buffer.concat([uint32(16 + head.length + body.length), uint32(head.length)])
  const message = Buffer.concat([prelude, uint32(crc32(prelude)), head, body])
  return Buffer.concat([message, uint32(crc32(message))])
}

/** An event of the model in a frame. */
export const eventFrame = (event: Event | string): Buffer => {
  const bytes = Buffer.from(typeof event === "string" ? event : JSON.stringify(event), "utf8").toString("base64")
  return frame(
    { ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" },
    JSON.stringify({ bytes, p: "abcdefghij" })
  )
}

/** An exception in a frame. */
export const exceptionFrame = (type: string, message: string): Buffer =>
  frame(
    { ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" },
    JSON.stringify({ message })
  )

/** Frames as an answer. */
export const frames = (
  all: ReadonlyArray<Uint8Array>,
  options?: { readonly cuts?: (length: number) => Iterable<number>; readonly end?: Reply["end"] }
): Reply => {
  const bytes = Buffer.concat(all)
  return {
    status: 200,
    headers: {
      "content-type": "application/vnd.amazon.eventstream",
      "x-amzn-requestid": "aws-stream",
      "x-amzn-bedrock-content-type": "application/json"
    },
    chunks: cutBytes(bytes, options?.cuts?.(bytes.length) ?? []),
    end: options?.end ?? "end",
    checked: true
  }
}

/** An answer as Bedrock streams it. */
export const framed = (events: ReadonlyArray<Event>, options?: Parameters<typeof frames>[1]): Reply =>
  frames(events.filter((event) => event.type !== "ping").map(eventFrame), options)

/** An error in AWS's form. */
export const awsError = (
  status: number,
  type: string,
  message: string,
  headers?: Readonly<Record<string, string>>
): Reply => ({
  status,
  headers: {
    "content-type": "application/json",
    "x-amzn-requestid": "aws-json",
    "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    ...headers
  },
  chunks: [encoder.encode(JSON.stringify({ message }))],
  end: "end",
  checked: false
})

/** The problems of a request to Bedrock. */
const bedrockViolations = ({ body, headers, url }: Recorded): ReadonlyArray<string> => [
  ...(/^\/model\/[^/]+\/invoke-with-response-stream$/.test(url) ? [] : [`no such path: ${url}`]),
  ...["model", "stream"].filter((key) => key in body).map((key) => `${key}: extraneous key is not permitted`),
  ...(body.anthropic_version === "bedrock-2023-05-31" ? [] : [`Invalid API version: ${body.anthropic_version}`]),
  ...(Number(body.max_tokens) >= 1 ? [] : ["max_tokens: Field required"]),
  ...(headers["authorization"] === undefined ? ["Missing Authentication Token"] : []),
  ...bodyViolations(body, false)
]

export const serveBedrock = serveBy(bedrockViolations)

const hash = (data: string): string => createHash("sha256").update(data, "utf8").digest("hex")

const hmac = (key: string | Buffer, data: string): Buffer => createHmac("sha256", key).update(data, "utf8").digest()

const escape = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)

/** The input of a signature: the request as it is on the wire. */
export interface Signable {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly signedHeaders: ReadonlyArray<string>
  readonly body: string
  readonly date: string
  readonly region: string
  readonly service: string
  readonly secret: string
}

/** AWS's signature, version 4, from its specification: the path on the wire is encoded once more. */
export const signatureOf = (request: Signable): string => {
  const [path = "", query = ""] = request.url.split("?")
  const canonical = [
    request.method,
    path.split("/").map(escape).join("/"),
    query.split("&").sort().join("&"),
    ...request.signedHeaders.map((name) => `${name}:${(request.headers[name] ?? "").trim().replace(/ +/g, " ")}`),
    "",
    request.signedHeaders.join(";"),
    hash(request.body)
  ].join("\n")
  const day = request.date.slice(0, 8)
  const scope = `${day}/${request.region}/${request.service}/aws4_request`
  const toSign = ["AWS4-HMAC-SHA256", request.date, scope, hash(canonical)].join("\n")
  const key = [day, request.region, request.service, "aws4_request"].reduce<string | Buffer>(
    hmac,
    `AWS4${request.secret}`
  )
  return hmac(key, toSign).toString("hex")
}

/** The signature of a request, and the signature that AWS would compute for it. */
export const signatures = (recorded: Recorded, secret: string, region: string) => {
  const authorization = recorded.headers["authorization"] ?? ""
  const [, credential = "", signed = "", signature = ""] =
    /Credential=([^,]+), SignedHeaders=([^,]+), Signature=(\w+)/.exec(authorization) ?? []
  const headers = Object.fromEntries(Object.entries(recorded.headers).map(([name, value]) => [name, String(value)]))
  return {
    credential,
    signedHeaders: signed.split(";"),
    given: signature,
    expected: signatureOf({
      method: recorded.method,
      url: recorded.url,
      headers,
      signedHeaders: signed.split(";"),
      body: recorded.raw,
      date: headers["x-amz-date"] ?? "",
      region,
      service: "bedrock",
      secret
    })
  }
}

/** One event of Bedrock's Converse API. */
export const converseFrame = (type: string, payload: object): Buffer =>
  frame({ ":event-type": type, ":content-type": "application/json", ":message-type": "event" }, JSON.stringify(payload))

/** A block of an answer of the Converse API: the deltas that it is made of, and its beginning if it has one. */
export interface ConverseBlock {
  readonly start?: object
  readonly deltas: ReadonlyArray<object>
}

/** The frames of an answer of the Converse API. */
export const converseAnswer = (
  blocks: ReadonlyArray<ConverseBlock>,
  stopReason: string,
  usage: object = { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
): ReadonlyArray<Buffer> => [
  converseFrame("messageStart", { role: "assistant" }),
  ...blocks.flatMap(({ deltas, start }, contentBlockIndex) => [
    ...(start === undefined ? [] : [converseFrame("contentBlockStart", { contentBlockIndex, start })]),
    ...deltas.map((delta) => converseFrame("contentBlockDelta", { contentBlockIndex, delta })),
    converseFrame("contentBlockStop", { contentBlockIndex })
  ]),
  converseFrame("messageStop", { stopReason }),
  converseFrame("metadata", { usage, metrics: { latencyMs: 7 } })
]

// A client's request is inspected as it is.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

/** Calls and results of the client: those of a tool that AWS runs have a type. */
const idsOf = (message: Any, kind: string): ReadonlyArray<string> =>
  (message?.content ?? []).flatMap((part: Any) =>
    part[kind] === undefined || part[kind].type !== undefined ? [] : [part[kind].toolUseId]
  )

/** The rules of one message of a conversation. */
const messageViolations = (messages: ReadonlyArray<Any>, model: string): ReadonlyArray<string> =>
  messages.flatMap((message, index) => {
    const last = messages[index - 1]
    const results = idsOf(message, "toolResult")
    const calls = idsOf(last, "toolUse")
    const isClaudeOrNova = /anthropic|nova/.test(model)
    return [
      ...(last?.role === message.role ? ["A conversation must alternate between user and assistant roles."] : []),
      ...(message.content.length === 0 ? ["The content field is empty"] : []),
      ...message.content.flatMap((part: Any) => [
        ...(Object.keys(part).length === 1 ? [] : ["a part is a union of one"]),
        ...(part.text?.trim() === "" ? ["The text field in the ContentBlock object is blank."] : []),
        ...(part.cachePoint !== undefined && !isClaudeOrNova
          ? ["You invoked an unsupported model for cachePoint"]
          : []),
        ...(part.toolResult?.status !== undefined && part.toolResult.type === undefined && !isClaudeOrNova
          ? ["This model doesn't support the status field."]
          : []),
        ...(part.document !== undefined && !/^[a-zA-Z0-9()[\]-]+(?: [a-zA-Z0-9()[\]-]+)*$/.test(part.document.name)
          ? [`The document file name ${part.document.name} can only contain …`]
          : []),
        ...(idsOf({ content: [part] }, "toolUse").length > 0 &&
        model.includes("mistral") &&
        !/^[a-zA-Z0-9]{9}$/.test(part.toolUse.toolUseId)
          ? ["Tool call id must be a-z, A-Z, 0-9, with a length of 9."]
          : [])
      ]),
      ...(message.role !== "user" || [...calls].sort().join() === [...results].sort().join()
        ? []
        : [`toolUse and toolResult do not match: ${calls.join()} and ${results.join()}`]),
      ...(message.content.some((part: Any) => part.document !== undefined) &&
      !message.content.some((part: Any) => part.text !== undefined)
        ? ["A text block must be included when documents are."]
        : [])
    ]
  })

/** The problems of a request to the Converse API. */
const converseViolations = ({ body, url }: Recorded): ReadonlyArray<string> => {
  const path = /^\/model\/([^/]+)\/converse(?:-stream)?$/.exec(url)
  const model = decodeURIComponent(path?.[1] ?? "")
  const tools: ReadonlyArray<Any> = body.toolConfig?.tools ?? []
  const isUsed = body.messages.some((message: Any) => idsOf(message, "toolUse").length > 0)
  const known = [
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "requestMetadata",
    "performanceConfig",
    "serviceTier",
    "outputConfig"
  ]
  return [
    ...(path === null ? [`no such path: ${url}`] : []),
    ...Object.keys(body).flatMap((key) => (known.includes(key) ? [] : [`extraneous key [${key}] is not permitted`])),
    ...(body.messages[0]?.role === "user" ? [] : ["A conversation must start with a user message."]),
    ...(body.messages.at(-1)?.role === "user" ? [] : ["This model does not support assistant message prefill."]),
    ...(isUsed && tools.length === 0
      ? ["The toolConfig field must be defined when using toolUse and toolResult content blocks."]
      : []),
    ...tools.flatMap(({ toolSpec }) => {
      if (toolSpec === undefined) return []
      const { json } = toolSpec.inputSchema
      const more = Object.keys(json).filter((key) => !["type", "properties", "required"].includes(key))
      return [
        ...(/^[a-zA-Z0-9_-]{1,64}$/.test(toolSpec.name) ? [] : [`toolSpec.name: ${toolSpec.name}`]),
        ...(toolSpec.description === "" ? ["toolSpec.description: minimum length 1"] : []),
        ...(json.type === "object" ? [] : ["inputSchema.json.type must be object"]),
        ...(model.includes("nova") && more.length > 0 ? [`inputSchema.json: ${more.join()}`] : [])
      ]
    }),
    ...(body.toolConfig?.toolChoice !== undefined && /llama|gpt-oss/.test(model)
      ? ["This model doesn't support the toolConfig.toolChoice field."]
      : []),
    ...messageViolations(body.messages, model)
  ]
}

export const serveConverse = serveBy(converseViolations)

/** Failures as Bedrock says them: status, type, words, and the reason that they are. */
export const failures = [
  [400, "ValidationException", "The provided model identifier is invalid.", "InvalidRequest"],
  [400, "ValidationException", "Input is too long for requested model.", "ContextOverflow"],
  [403, "AccessDeniedException", "You don't have access", "Permission"],
  [403, "ExpiredTokenException", "The security token is expired", "Authentication"],
  [403, "UnrecognizedClientException", "The security token is invalid", "Authentication"],
  [403, "InvalidSignatureException", "The signature does not match", "Authentication"],
  [404, "ResourceNotFoundException", "no such model", "InvalidRequest"],
  [408, "ModelTimeoutException", "slow", "Timeout"],
  [424, "ModelErrorException", "the model failed", "InvalidRequest"],
  [429, "ThrottlingException", "Too many requests", "RateLimited"],
  [500, "InternalServerException", "oops", "Overloaded"],
  [503, "ServiceUnavailableException", "later", "Overloaded"],
  [529, "OverloadedException", "busy", "Overloaded"]
] as const
