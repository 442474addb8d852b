# settled, ready to run. How to run it is in docs/operations.md; the base image can be replaced:
#   docker build --build-arg NODE_IMAGE=node:24-bookworm-slim -t settled .
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS assembled
WORKDIR /app
COPY package.json package-lock.json .npmrc LICENSE ./
# The optional packages are Nodes for machines whose own is too old; this image brings a fitting one.
RUN npm ci --omit=dev --omit=optional
COPY assets ./assets
COPY bin ./bin
COPY migrations ./migrations
COPY src ./src
# Readable by all, whatever the modes in the checkout were.
RUN chmod -R u=rwX,go=rX . && chmod 0755 bin/settled.mjs \
 && install -d -o 1000 -g 1000 .compile-cache /trial
# Serves once: an image that cannot is not made. What Node compiles meanwhile is kept, for a process that is 40 MB
# smaller and ready sooner; Node finds it again only under the same user.
USER 1000:1000
ENV NODE_COMPILE_CACHE=/app/.compile-cache SETTLED_STORE=sqlite:/trial/settled.db
RUN node src/cli/main.ts serve & settled=$!; \
    timeout 30 sh -c 'until node src/cli/main.ts stats; do sleep 1; done' \
 && kill "$settled" \
 && wait "$settled"
USER 0:0
RUN chown -R 0:0 .compile-cache && chmod -R u=rwX,go=rX .compile-cache

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="settled" \
      org.opencontainers.image.description="The merchant's side of a single-use payment-link service" \
      org.opencontainers.image.version="0.4.0" \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/app/.compile-cache \
    SETTLED_STORE=sqlite:/data/settled.db \
    SETTLED_HOOKS_LISTEN=0.0.0.0:8787 \
    SETTLED_OPERATOR_LISTEN=0.0.0.0:8788
WORKDIR /app
COPY --from=assembled /app /app
RUN ln -s /app/bin/settled.mjs /usr/local/bin/settled \
 && install -d -m 0700 -o 1000 -g 1000 /data /secrets /database-secrets
VOLUME ["/data"]
USER 1000:1000
EXPOSE 8787 8788
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "/app/bin/ready.mjs"]
# Node itself, because npm as the first process swallows SIGTERM. docs/operations.md, The machine, tells what the option does.
CMD ["node", "--max-semi-space-size=16", "src/cli/main.ts", "serve"]
