/** Recognises who asks. There is no server without it. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Mac from "effect/crypto/Mac"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as HttpServer from "effect/http/HttpServer"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { TaggedError } from "../../../support/effect/taggedError.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import type { Principal } from "../tenant.ts"

/** The request names nobody that the server knows. */
export class Unauthorized extends TaggedError<Unauthorized>()("Unauthorized", {}) {
  override get message(): string {
    return "sign in, or send a valid token in the header Authorization"
  }
}

/** A cookie that names a principal. */
export interface Session {
  readonly name: string
  readonly value: Redacted.Redacted
}

/** Recognises principals by their requests. {@link bearer} and {@link loopback} make it. */
export class Auth extends Context.Service<
  Auth,
  {
    /** Recognises the principal of a request. It must not read the body. */
    readonly authenticate: (request: HttpServerRequest) => Effect.Effect<Principal, Unauthorized>
    /** Makes a token that opens one session of a page within a minute. Default: there are no sessions. */
    readonly issue?: Effect.Effect<Redacted.Redacted> | undefined
    /** Exchanges such a token. Default: there are no sessions. */
    readonly exchange?: ((token: Redacted.Redacted) => Effect.Effect<Session, Unauthorized>) | undefined
  }
>()("effect-deepagents/Auth") {}

/** The server listens where other machines reach it, and `Server.loopback` is for one person on this machine. */
export class NotLoopback extends TaggedError<NotLoopback>()("NotLoopback", { address: Schema.String }) {
  override get message(): string {
    return `Server.loopback needs a server on 127.0.0.1 or ::1, and this one listens on ${this.address}; bind it there, or recognise people with Server.bearer`
  }
}

const scheme = /^Bearer +([\w\-.~+/=]{1,8192})$/i

/** Reads the token of the header `Authorization`. */
const tokenOf = ({ headers }: HttpServerRequest): string | undefined => scheme.exec(headers["authorization"] ?? "")?.[1]

export interface BearerOptions {
  /** Gives the principal of a token. Compare tokens by their hashes: the time of a comparison of texts tells them. */
  readonly verify: (token: Redacted.Redacted) => Effect.Effect<Principal, Unauthorized>
}

/** Recognises principals by tokens in the header `Authorization: Bearer …`. */
export const makeBearer = ({ verify }: BearerOptions): Auth["Service"] => ({
  authenticate: (request) => {
    const token = tokenOf(request)
    return token === undefined ? Effect.fail(new Unauthorized()) : verify(Redacted.make(token))
  }
})

export interface LoopbackOptions {
  /**
   * The token of programs on this machine. Sessions of pages outlive a restart with the same token. Default: a random one.
   */
  readonly token?: Redacted.Redacted | undefined
  /** The tenant whose threads the person has. Default: `"local"`. */
  readonly tenant?: string | undefined
}

const lifetime = 60_000

/** The time that a session of a page lasts, in milliseconds: 30 days. */
const sessionTime = 30 * 86_400_000

/** The most tokens of pages that wait for their exchange. */
const waiting = 16

const bytes = (text: string) => new TextEncoder().encode(text)

/** Compares by hashes, so that the time tells nothing of the text. */
const isSame = (left: string, right: string): boolean =>
  Mac.timingSafeEqual(bytes(sha256Sync(left)), bytes(sha256Sync(right)))

const makeRandom = () => Base64Url.encode(SecureRandom.randomBytesUnsafe(32))

/** Recognises the one person of this machine, by the token of its programs or the cookie of a page. */
export const makeLoopback = Effect.fnUntraced(
  function* ({ tenant = "local", token }: LoopbackOptions) {
    /** The person of this machine. */
    const local: Principal = { tenant, id: "local", roles: ["operator"] }
    const { address } = yield* HttpServer.HttpServer
    if (NetAddress.isInetAddress(address) && !NetAddress.isLoopback(address.address)) {
      return yield* new NotLoopback({ address: String(address) })
    }
    // Cookies of all ports of a host come together.
    const name = `deepagents-${NetAddress.isInetAddress(address) ? address.port : "local"}`
    const own = token === undefined ? makeRandom() : Redacted.value(token)
    const mac = yield* Mac.Mac
    const key = yield* Effect.orDie(Mac.key(Mac.hmacSha256, bytes(own)))
    const issued = new Map<string, number>()

    const isCookie = Effect.fnUntraced(function* (cookie: string) {
      const [id = "", tag = ""] = cookie.split(".")
      const signature = Result.getOrUndefined(Base64Url.decode(tag))
      const until = Number.parseInt(id.slice(id.lastIndexOf("~") + 1), 36)
      if (signature === undefined || !(until > (yield* Clock.currentTimeMillis))) return false
      return yield* Effect.orElseSucceed(mac.verify(key, signature, bytes(`session ${id}`)), () => false)
    })

    const exchange = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
      const now = yield* Clock.currentTimeMillis
      const entry = [...issued].find(([one]) => isSame(one, Redacted.value(secret)))
      if (entry === undefined) return yield* new Unauthorized()
      issued.delete(entry[0])
      if (entry[1] < now) return yield* new Unauthorized()
      const id = `${makeRandom()}~${(now + sessionTime).toString(36)}`
      const tag = Base64Url.encode(yield* Effect.orDie(mac.sign(key, bytes(`session ${id}`))))
      return { name, value: Redacted.make(`${id}.${tag}`) }
    })

    return Auth.of({
      authenticate: Effect.fnUntraced(function* (request) {
        const secret = tokenOf(request)
        if (secret !== undefined && isSame(secret, own)) return local
        const cookie = request.cookies[name]
        if (cookie !== undefined && (yield* isCookie(cookie))) return local
        return yield* new Unauthorized()
      }),
      issue: Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        for (const [one, until] of issued) if (until < now || issued.size >= waiting) issued.delete(one)
        const fresh = makeRandom()
        issued.set(fresh, now + lifetime)
        return Redacted.make(fresh)
      }),
      exchange
    })
  },
  Effect.provide(Layer.provideMerge(Mac.layerWebCrypto, SecureRandom.layerWebCrypto))
)
