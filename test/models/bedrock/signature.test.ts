import { createRequire } from "node:module"
import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { ChatModel, type ModelError } from "effect-deepagents"
import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import { afterEach, beforeEach, describe, vi } from "vitest"
import { failure, turn } from "../anthropic/asking.ts"
import { answer, type Recorded } from "../servers/anthropic.ts"
import { framed, serveBedrock, type Signable, signatureOf, signatures } from "../servers/bedrock.ts"

const token =
  "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

const exampleKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

const vector = (
  name: string,
  url: string,
  signature: string,
  more?: {
    readonly method?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
    readonly token?: string
  }
) => ({ name, url, signature, method: "GET", body: "", headers: {}, ...more })

/** From AWS's published test suite for signature version 4. */
const vectors = [
  vector("get-vanilla", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
  vector("get-utf8", "/ሴ", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
  vector("get-space", "/example space/", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
  vector(
    "get-unreserved",
    "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"
  ),
  vector(
    "get-vanilla-query-order-key-case",
    "/?Param2=value2&Param1=value1",
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
  ),
  vector("get-header-value-trim", "/", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736", {
    headers: { "my-header1": " value1", "my-header2": ' "a   b   c"' }
  }),
  vector("post-sts-header-before", "/", "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead", {
    method: "POST",
    token
  }),
  vector("post-x-www-form-urlencoded", "/", "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b", {
    method: "POST",
    body: "Param1=value1",
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "content-length": "13",
      "x-amz-content-sha256": "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"
    }
  })
]

interface Signer {
  readonly sign: (
    request: unknown,
    options: { readonly signingDate: Date }
  ) => Promise<{ readonly headers: Readonly<Record<string, string>> }>
}

/** The very signer that the SDK signs with. */
const sdk = createRequire(createRequire(import.meta.url).resolve("@anthropic-ai/bedrock-sdk"))
const { SignatureV4 } = sdk("@smithy/signature-v4") as { readonly SignatureV4: new (options: unknown) => Signer }
const { HttpRequest } = sdk("@smithy/protocol-http") as { readonly HttpRequest: new (options: unknown) => unknown }
const { Sha256 } = sdk("@aws-crypto/sha256-js") as { readonly Sha256: unknown }

describe("AWS's published signature vectors", () => {
  const own = ({ body, headers, method, token: session, url }: (typeof vectors)[number]): Signable => {
    const all: Record<string, string> = {
      host: "example.amazonaws.com",
      "x-amz-date": "20150830T123600Z",
      ...headers,
      ...(session === undefined ? {} : { "x-amz-security-token": session })
    }
    return {
      method,
      url,
      body,
      headers: all,
      signedHeaders: Object.keys(all).sort(),
      date: "20150830T123600Z",
      region: "us-east-1",
      service: "service",
      secret: exampleKey
    }
  }

  it.each(vectors)("our own computation: $name", (one) => {
    expect(signatureOf(own(one))).toBe(one.signature)
  })

  it.live.each(vectors)("the SDK's signer: $name", (one) =>
    Effect.gen(function* () {
      const signer = new SignatureV4({
        service: "service",
        region: "us-east-1",
        credentials: {
          accessKeyId: "AKIDEXAMPLE",
          secretAccessKey: exampleKey,
          ...(one.token === undefined ? {} : { sessionToken: one.token })
        },
        sha256: Sha256,
        applyChecksum: false
      })
      const [path = "", query = ""] = one.url.split("?")
      const request = new HttpRequest({
        method: one.method,
        path,
        query: Object.fromEntries(new URLSearchParams(query)),
        headers: { host: "example.amazonaws.com", ...one.headers },
        body: one.body
      })
      const signingDate = new Date("2015-08-30T12:36:00Z")
      const signed = yield* Effect.promise(() => signer.sign(request, { signingDate }))
      expect(signed.headers["authorization"]).toContain(`Signature=${one.signature}`)
    })
  )
})

beforeEach(() => {
  for (const name of [
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_REGION",
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN"
  ]) {
    vi.stubEnv(name, undefined)
  }
})

afterEach(() => {
  vi.unstubAllEnvs()
})

const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: Redacted.make(secret) }

const ok = framed(answer([{ text: "hi" }]))

const sendRequest = (options: Partial<BedrockChatModel.Options>): Effect.Effect<Recorded, ModelError.ModelError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* serveBedrock(ok)
      yield* turn(
        BedrockChatModel.layer({ model: "global.anthropic.claude-opus-5-5", baseURL: server.url, ...options })
      )
      return server.requests[0]!
    })
  )

describe("a request to Bedrock", () => {
  it.live.each([
    ["anthropic.claude-opus-4-1-20250805-v1:0", "anthropic.claude-opus-4-1-20250805-v1:0"],
    ["eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"],
    ["global.anthropic.claude-opus-5-5", "global.anthropic.claude-opus-5-5"],
    [
      "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123",
      "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile%2Fabc123"
    ]
  ])("for %s is signed as AWS will check it", ([model = "", path]) =>
    Effect.gen(function* () {
      const request = yield* sendRequest({ model, credentials, region: "eu-west-1" })
      expect(request.url).toBe(`/model/${path}/invoke-with-response-stream`)
      const { credential, expected, given, signedHeaders } = signatures(request, secret, "eu-west-1")
      expect(given).toBe(expected)
      expect(credential).toMatch(/^AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock\/aws4_request$/)
      expect(signedHeaders).toEqual(expect.arrayContaining(["content-type", "host", "x-amz-date"]))
      const otherwise = signatures({ ...request, url: request.url.replace("invoke", "invoke2") }, secret, "eu-west-1")
      expect(otherwise.expected).not.toBe(given)
    })
  )

  it.live("signs headers, betas and a session token too", () =>
    Effect.gen(function* () {
      const request = yield* sendRequest({
        credentials: { ...credentials, sessionToken: Redacted.make("session-token") },
        region: "us-east-1",
        headers: { "x-amzn-bedrock-guardrailidentifier": "g-1" },
        betas: ["context-1m-2025-08-07"]
      })
      const { expected, given, signedHeaders } = signatures(request, secret, "us-east-1")
      expect(given).toBe(expected)
      expect(signedHeaders).toEqual(
        expect.arrayContaining(["x-amz-security-token", "x-amzn-bedrock-guardrailidentifier"])
      )
      expect(request.headers["x-amz-security-token"]).toBe("session-token")
      expect(request.body.anthropic_beta).toEqual(["context-1m-2025-08-07"])
    })
  )

  it.live("carries a bearer token, and then no signature", () =>
    Effect.gen(function* () {
      const { headers } = yield* sendRequest({ bearerToken: Redacted.make("bedrock-api-key") })
      expect(headers["authorization"]).toBe("Bearer bedrock-api-key")
      expect(headers["x-amz-date"]).toBeUndefined()
    })
  )

  it.live("finds a bearer token in the environment", () =>
    Effect.gen(function* () {
      vi.stubEnv("AWS_BEARER_TOKEN_BEDROCK", "from-env")
      expect((yield* sendRequest({})).headers["authorization"]).toBe("Bearer from-env")
    })
  )

  it.live("uses credentials that are written down, whatever the environment holds", () =>
    Effect.gen(function* () {
      vi.stubEnv("AWS_BEARER_TOKEN_BEDROCK", "from-env")
      const request = yield* sendRequest({ credentials, region: "us-east-1" })
      const { expected, given } = signatures(request, secret, "us-east-1")
      expect(given).toBe(expected)
    })
  )

  it.live("finds credentials and region by AWS's default chain", () =>
    Effect.gen(function* () {
      vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDFROMENV")
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", secret)
      vi.stubEnv("AWS_REGION", "ap-northeast-1")
      const request = yield* sendRequest({})
      const { credential, expected, given } = signatures(request, secret, "ap-northeast-1")
      expect(credential).toContain("AKIDFROMENV/")
      expect(given).toBe(expected)
    })
  )

  it.live("without any credentials fails with Authentication", () =>
    Effect.gen(function* () {
      for (const name of ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"]) vi.stubEnv(name, "/nowhere")
      vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true")
      const server = yield* serveBedrock(ok)
      const failed = yield* failure(BedrockChatModel.layer({ model: "anthropic.claude-opus-5-5", baseURL: server.url }))
      expect([failed.reason._tag, failed.isRetryable, server.requests.length]).toEqual(["Authentication", false, 0])
      expect(failed.detail).toContain("AWS_PROFILE")
    })
  )

  it.live("goes to the endpoint of its region", () =>
    Effect.gen(function* () {
      const urls: Array<string> = []
      const fetch: typeof globalThis.fetch = (input) => {
        urls.push(new Request(input).url)
        return Promise.resolve(new Response("{}", { status: 500 }))
      }
      yield* failure(
        BedrockChatModel.layer({ model: "anthropic.claude-opus-5-5", region: "eu-central-1", credentials, fetch })
      )
      expect(urls).toEqual([
        "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-opus-5-5/invoke-with-response-stream"
      ])
    })
  )
})

describe("the layer", () => {
  it.effect("knows its model behind region, vendor, date and version", () =>
    Effect.gen(function* () {
      const knownFacts = (model: string) =>
        Effect.provide(ChatModel.ChatModel, BedrockChatModel.layer({ model, bearerToken: Redacted.make("k") }))
      expect(yield* knownFacts("eu.anthropic.claude-sonnet-4-5-20250929-v1:0")).toMatchObject({
        provider: "bedrock",
        contextWindowTokens: 200_000,
        prices: { input: expect.closeTo(3.3), output: expect.closeTo(16.5) }
      })
      expect(yield* knownFacts("global.anthropic.claude-opus-5-5")).toMatchObject({ prices: { input: 4, output: 20 } })
      expect((yield* knownFacts("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x")).prices).toBeUndefined()
    })
  )
})
