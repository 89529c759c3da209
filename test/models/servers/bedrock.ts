/**
 * What Bedrock adds to the Messages API: its paths, AWS's event stream with real checksums, its errors; and a second,
 * independent computation of AWS's signature.
 */
import { createHash, createHmac } from "node:crypto"
import { crc32 } from "node:zlib"
import { cut, type Event, type Recorded, type Reply, serveBy } from "./anthropic.ts"
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
    chunks: cut(bytes, options?.cuts?.(bytes.length) ?? []),
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

/** What is wrong with a request to Bedrock. */
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

/** What a signature is computed from: the request as it is on the wire. */
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

/** The signature that a request came with, and the one that AWS would compute for it. */
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
