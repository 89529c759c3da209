/** Common parts of Jira and Confluence. */
import * as Base64 from "effect/encoding/Base64"
import * as Redacted from "effect/Redacted"
import type { Credential } from "../../../stores/CredentialStore.ts"
import type { Connection } from "../../Connection.ts"
import { bearer, type Shown } from "./http.ts"

/**
 * `baseUrl` is `https://your-site.atlassian.net` with an `ApiKey` of `address:token`, or with an `OAuthToken`
 * `https://api.atlassian.com/ex/jira/CLOUD_ID` (`/ex/confluence/`).
 */
export interface SiteOptions<out R = never> {
  readonly connection: Connection<R>
  readonly baseUrl: string
}

export const show = (credential: Credential): Shown =>
  credential._tag === "ApiKey"
    ? {
        headers: {
          authorization: Redacted.make(
            `Basic ${Base64.encode(new TextEncoder().encode(Redacted.value(credential.key)))}`
          )
        }
      }
    : bearer(credential)
