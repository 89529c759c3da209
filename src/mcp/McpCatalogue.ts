/**
 * Remote MCP servers that the services themselves run, as data. They are an alternative to connectors.
 *
 * ```ts
 * import { McpCatalogue } from "effect-deepagents/mcp"
 *
 * const linear = McpCatalogue.find("linear")
 * // { name: "linear", url: "https://mcp.linear.app/mcp", auth: "oauth", … }
 * ```
 *
 * The data is from the services' own pages (`docs`) of November 2026, without a request to any server, and may change.
 * Asana and HubSpot do not register clients: create one there for the application. Figma accepts only known clients.
 */
import { normaliseName } from "../support/text/names.ts"

/**
 * A server over streamable HTTP. `auth`: `oauth` signs in by MCP's own rules, `token` needs a bearer token of the
 * account, `none` needs nothing. `docs` is the service's own page about it.
 */
export interface Server {
  readonly name: string
  readonly url: string
  readonly auth: "oauth" | "token" | "none"
  readonly gives: string
  readonly docs: string
}

/** The servers, by name. */
export const servers: ReadonlyArray<Server> = [
  {
    name: "asana",
    url: "https://mcp.asana.com/v2/mcp",
    auth: "oauth",
    gives: "tasks, projects, goals",
    docs: "https://developers.asana.com/docs/using-asanas-mcp-server"
  },
  {
    name: "atlassian",
    url: "https://mcp.atlassian.com/v1/mcp/authv2",
    auth: "oauth",
    gives: "Jira issues, Confluence pages",
    docs: "https://support.atlassian.com/atlassian-ai-gateway/docs/use-rovo-mcp-with-other-supported-mcp-clients/"
  },
  {
    name: "cloudflare",
    url: "https://bindings.mcp.cloudflare.com/mcp",
    auth: "oauth",
    gives: "Workers, storage, databases of an account",
    docs: "https://developers.cloudflare.com/agents/model-context-protocol/mcp-servers-for-cloudflare"
  },
  {
    name: "cloudflare-docs",
    url: "https://docs.mcp.cloudflare.com/mcp",
    auth: "none",
    gives: "Cloudflare's documentation",
    docs: "https://github.com/cloudflare/mcp-server-cloudflare"
  },
  {
    name: "context7",
    url: "https://mcp.context7.com/mcp",
    auth: "token",
    gives: "documentation of libraries, by version",
    docs: "https://github.com/upstash/context7"
  },
  {
    name: "deepwiki",
    url: "https://mcp.deepwiki.com/mcp",
    auth: "none",
    gives: "questions about public GitHub repositories",
    docs: "https://docs.devin.ai/work-with-devin/deepwiki-mcp"
  },
  {
    name: "figma",
    url: "https://mcp.figma.com/mcp",
    auth: "oauth",
    gives: "designs as code, variables, components",
    docs: "https://github.com/figma/mcp-server-guide"
  },
  {
    name: "github",
    url: "https://api.githubcopilot.com/mcp/",
    auth: "token",
    gives: "repositories, issues, pull requests, actions",
    docs: "https://github.com/github/github-mcp-server"
  },
  {
    name: "hubspot",
    url: "https://mcp.hubspot.com",
    auth: "oauth",
    gives: "contacts, companies, deals, tickets",
    docs: "https://developers.hubspot.com/docs/apps/developer-platform/build-apps/integrate-with-hubspot-mcp-server"
  },
  {
    name: "hugging-face",
    url: "https://huggingface.co/mcp",
    auth: "token",
    gives: "models, data sets, papers, spaces",
    docs: "https://github.com/huggingface/hf-mcp-server"
  },
  {
    name: "intercom",
    url: "https://mcp.intercom.com/mcp",
    auth: "oauth",
    gives: "conversations, contacts",
    docs: "https://developers.intercom.com/docs/guides/mcp"
  },
  {
    name: "linear",
    url: "https://mcp.linear.app/mcp",
    auth: "oauth",
    gives: "issues, projects, comments",
    docs: "https://linear.app/docs/mcp"
  },
  {
    name: "microsoft-learn",
    url: "https://learn.microsoft.com/api/mcp",
    auth: "none",
    gives: "Microsoft's documentation",
    docs: "https://github.com/MicrosoftDocs/mcp"
  },
  {
    name: "monday",
    url: "https://mcp.monday.com/mcp",
    auth: "oauth",
    gives: "boards, items, updates",
    docs: "https://github.com/mondaycom/mcp"
  },
  {
    name: "neon",
    url: "https://mcp.neon.tech/mcp",
    auth: "oauth",
    gives: "Postgres projects, branches, queries",
    docs: "https://github.com/neondatabase/mcp-server-neon"
  },
  {
    name: "notion",
    url: "https://mcp.notion.com/mcp",
    auth: "oauth",
    gives: "pages, databases, comments",
    docs: "https://developers.notion.com/docs/mcp"
  },
  {
    name: "paypal",
    url: "https://mcp.paypal.com/http",
    auth: "oauth",
    gives: "invoices, payments, disputes",
    docs: "https://developer.paypal.com/ai-tools/mcp-server"
  },
  {
    name: "sentry",
    url: "https://mcp.sentry.dev/mcp",
    auth: "oauth",
    gives: "errors, issues, projects",
    docs: "https://github.com/getsentry/sentry-mcp"
  },
  {
    name: "stripe",
    url: "https://mcp.stripe.com",
    auth: "oauth",
    gives: "customers, payments, invoices, documentation",
    docs: "https://docs.stripe.com/mcp"
  },
  {
    name: "supabase",
    url: "https://mcp.supabase.com/mcp",
    auth: "oauth",
    gives: "databases, migrations, logs",
    docs: "https://github.com/supabase-community/supabase-mcp"
  },
  {
    name: "vercel",
    url: "https://mcp.vercel.com",
    auth: "oauth",
    gives: "deployments, projects, logs",
    docs: "https://vercel.com/docs/cli/mcp"
  }
]

/** Finds a server by its name, however that is written. */
export const find = (name: string): Server | undefined =>
  servers.find((one) => normaliseName(one.name) === normaliseName(name))
