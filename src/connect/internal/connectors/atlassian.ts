/** Common parts of Jira and Confluence. */
import * as Base64 from "effect/encoding/Base64"
import * as Redacted from "effect/Redacted"
import type { Credential } from "../../../stores/CredentialStore.ts"
import type { Connection } from "../../Connection.ts"
import { bearer, type CredentialParts } from "./http.ts"

/** The options of a connector to a site of Atlassian. */
export interface SiteOptions<out R = never> {
  /** The connection to the site. */
  readonly connection: Connection<R>
  /**
   * The address: `https://your-site.atlassian.net` with an `ApiKey` of `address:token`, or
   * `https://api.atlassian.com/ex/jira/CLOUD_ID` (`/ex/confluence/`) with an `OAuthToken`.
   */
  readonly baseUrl: string
}

export const show = (credential: Credential): CredentialParts =>
  credential._tag === "ApiKey"
    ? {
        headers: {
          authorization: Redacted.make(
            `Basic ${Base64.encode(new TextEncoder().encode(Redacted.value(credential.key)))}`
          )
        }
      }
    : bearer(credential)
