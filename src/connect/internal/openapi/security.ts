/** Chooses the credential of an operation by the security schemes of its document. */
import * as Base64 from "effect/encoding/Base64"
import * as Redacted from "effect/Redacted"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import type { Credential } from "../../../stores/CredentialStore.ts"
import { encodePart } from "../../../support/text/percent.ts"
import { type Connection, secretOf } from "../../Connection.ts"
import { type Access, bearer, type CredentialParts } from "../connectors/http.ts"
import { type Document, objectAt, resolve, textAt } from "./document.ts"

/** One connection for the whole document, or one for each of its security schemes. */
export type Auth<R> = Connection<R> | { readonly [scheme: string]: Connection<R> }

const isConnection = <R>(auth: Auth<R>): auth is Connection<R> => typeof auth["credential"] === "function"

/** Lists the security schemes that have a connection. */
export const namesOf = <R>(auth: Auth<R> | undefined): ReadonlyArray<string> =>
  auth === undefined || isConnection(auth) ? [] : Object.keys(auth)

export const schemesOf = ({ root }: Document): JsonObject =>
  objectAt(objectAt(root, "components"), "securitySchemes") ?? {}

const encodeBase64 = (text: string): string => Base64.encode(new TextEncoder().encode(text))

/** Shows a credential by a security scheme. For `basic`, the key is `user:password`, or a user without password. */
const showAs =
  (scheme: JsonObject | undefined) =>
  (credential: Credential): CredentialParts => {
    const secret = Redacted.value(secretOf(credential))
    const type = scheme?.["type"]
    if (type === "http" && /^basic$/i.test(textAt(scheme ?? {}, "scheme") ?? "") && credential._tag === "ApiKey") {
      const pair = secret.includes(":") ? secret : `${secret}:`
      return { headers: { authorization: Redacted.make(`Basic ${encodeBase64(pair)}`) } }
    }
    const name = textAt(scheme ?? {}, "name")
    if (type !== "apiKey" || name === undefined) return bearer(credential)
    if (scheme?.["in"] === "query") return { query: { [name]: Redacted.make(secret) } }
    if (scheme?.["in"] === "cookie") {
      return { headers: { cookie: Redacted.make(`${name}=${encodePart(secret)}`) } }
    }
    return { headers: { [name.toLowerCase()]: Redacted.make(secret) } }
  }

/** Chooses the connection of an operation. `undefined` if the operation needs none, or none exists. */
export const accessOf = <R>(
  document: Document,
  auth: Auth<R> | undefined,
  security: ReadonlyArray<Json> | undefined
): Access<R> | undefined => {
  if (auth === undefined) return undefined
  const schemes = schemesOf(document)
  const schemeOf = (name: string) => resolve(document, Object.hasOwn(schemes, name) ? schemes[name] : undefined)
  const names = (security ?? []).flatMap((one) => (isObject(one) ? Object.keys(one) : []))
  if (security !== undefined && names.length === 0) return undefined
  if (!isConnection(auth)) {
    const name = names.find((one) => Object.hasOwn(auth, one))
    const connection = name === undefined ? undefined : auth[name]
    return connection === undefined || name === undefined ? undefined : { connection, show: showAs(schemeOf(name)) }
  }
  const [name] = names.length > 0 ? names : Object.keys(schemes)
  return { connection: auth, show: showAs(name === undefined ? undefined : schemeOf(name)) }
}
