#!/usr/bin/env bash
# Entry point of the containers that Spark on Kubernetes starts: `spark.sh driver ARGUMENTS-OF-SPARK-SUBMIT...` or
# `spark.sh executor`. Spark sets the other parameters as environment variables of the pod (Spark 4.0,
# KubernetesExecutorBackend).
set -euo pipefail

# Prints the executor's JVM options, one from each variable SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...
java_options() {
    local number=0 name
    while name="SPARK_JAVA_OPT_$number" && [ -n "${!name:-}" ]; do
        printf '%s\0' "${!name}"
        number=$((number + 1))
    done
}

case "${1:-}" in
    driver)
        shift
        exec "$SPARK_HOME/bin/spark-submit" --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
            --deploy-mode client "$@"
        ;;
    executor)
        mapfile -d '' -t options < <(java_options)
        exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
            -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:-}:$SPARK_HOME/jars/*" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
            --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
            --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
        ;;
    *)
        echo "spark.sh: the first argument must be driver or executor. On one node, use the image target monitor" >&2
        exit 2
        ;;
esac
