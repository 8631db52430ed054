import * as $protobuf from "#protobuf";

export namespace inference {
    interface IServerLiveRequest extends inference.ServerLiveRequest.$Properties {
    }

    class ServerLiveRequest {
        constructor(properties?: inference.ServerLiveRequest.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.ServerLiveRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ServerLiveRequest & inference.ServerLiveRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ServerLiveRequest;
    }

    namespace ServerLiveRequest {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ServerLiveRequest.$Properties;
    }

    interface IServerLiveResponse extends inference.ServerLiveResponse.$Properties {
    }

    class ServerLiveResponse {
        constructor(properties?: inference.ServerLiveResponse.$Properties);

        $unknowns?: Uint8Array[];

        live: boolean;

        static encode(message: inference.ServerLiveResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ServerLiveResponse & inference.ServerLiveResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ServerLiveResponse;
    }

    namespace ServerLiveResponse {
        interface $Properties {
            live?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ServerLiveResponse.$Properties;
    }

    interface IServerReadyRequest extends inference.ServerReadyRequest.$Properties {
    }

    class ServerReadyRequest {
        constructor(properties?: inference.ServerReadyRequest.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.ServerReadyRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ServerReadyRequest & inference.ServerReadyRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ServerReadyRequest;
    }

    namespace ServerReadyRequest {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ServerReadyRequest.$Properties;
    }

    interface IServerReadyResponse extends inference.ServerReadyResponse.$Properties {
    }

    class ServerReadyResponse {
        constructor(properties?: inference.ServerReadyResponse.$Properties);

        $unknowns?: Uint8Array[];

        ready: boolean;

        static encode(message: inference.ServerReadyResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ServerReadyResponse & inference.ServerReadyResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ServerReadyResponse;
    }

    namespace ServerReadyResponse {
        interface $Properties {
            ready?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ServerReadyResponse.$Properties;
    }

    interface IModelReadyRequest extends inference.ModelReadyRequest.$Properties {
    }

    class ModelReadyRequest {
        constructor(properties?: inference.ModelReadyRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        version: string;

        static encode(message: inference.ModelReadyRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelReadyRequest & inference.ModelReadyRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelReadyRequest;
    }

    namespace ModelReadyRequest {
        interface $Properties {
            name?: (string|null);

            version?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelReadyRequest.$Properties;
    }

    interface IModelReadyResponse extends inference.ModelReadyResponse.$Properties {
    }

    class ModelReadyResponse {
        constructor(properties?: inference.ModelReadyResponse.$Properties);

        $unknowns?: Uint8Array[];

        ready: boolean;

        static encode(message: inference.ModelReadyResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelReadyResponse & inference.ModelReadyResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelReadyResponse;
    }

    namespace ModelReadyResponse {
        interface $Properties {
            ready?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelReadyResponse.$Properties;
    }

    interface IServerMetadataRequest extends inference.ServerMetadataRequest.$Properties {
    }

    class ServerMetadataRequest {
        constructor(properties?: inference.ServerMetadataRequest.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.ServerMetadataRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ServerMetadataRequest & inference.ServerMetadataRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ServerMetadataRequest;
    }

    namespace ServerMetadataRequest {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ServerMetadataRequest.$Properties;
    }

    interface IServerMetadataResponse extends inference.ServerMetadataResponse.$Properties {
    }

    class ServerMetadataResponse {
        constructor(properties?: inference.ServerMetadataResponse.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        version: string;

        extensions: string[];

        static encode(message: inference.ServerMetadataResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ServerMetadataResponse & inference.ServerMetadataResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ServerMetadataResponse;
    }

    namespace ServerMetadataResponse {
        interface $Properties {
            name?: (string|null);

            version?: (string|null);

            extensions?: (string[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ServerMetadataResponse.$Properties;
    }

    interface IModelMetadataRequest extends inference.ModelMetadataRequest.$Properties {
    }

    class ModelMetadataRequest {
        constructor(properties?: inference.ModelMetadataRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        version: string;

        static encode(message: inference.ModelMetadataRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelMetadataRequest & inference.ModelMetadataRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelMetadataRequest;
    }

    namespace ModelMetadataRequest {
        interface $Properties {
            name?: (string|null);

            version?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelMetadataRequest.$Properties;
    }

    interface IModelMetadataResponse extends inference.ModelMetadataResponse.$Properties {
    }

    class ModelMetadataResponse {
        constructor(properties?: inference.ModelMetadataResponse.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        versions: string[];

        platform: string;

        inputs: inference.ModelMetadataResponse.TensorMetadata.$Properties[];

        outputs: inference.ModelMetadataResponse.TensorMetadata.$Properties[];

        static encode(message: inference.ModelMetadataResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelMetadataResponse & inference.ModelMetadataResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelMetadataResponse;
    }

    namespace ModelMetadataResponse {
        interface $Properties {
            name?: (string|null);

            versions?: (string[]|null);

            platform?: (string|null);

            inputs?: (inference.ModelMetadataResponse.TensorMetadata.$Properties[]|null);

            outputs?: (inference.ModelMetadataResponse.TensorMetadata.$Properties[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelMetadataResponse.$Properties;

        interface ITensorMetadata extends inference.ModelMetadataResponse.TensorMetadata.$Properties {
        }

        class TensorMetadata {
            constructor(properties?: inference.ModelMetadataResponse.TensorMetadata.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            datatype: string;

            shape: (number|bigint)[];

            static encode(message: inference.ModelMetadataResponse.TensorMetadata.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelMetadataResponse.TensorMetadata & inference.ModelMetadataResponse.TensorMetadata.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelMetadataResponse.TensorMetadata;
        }

        namespace TensorMetadata {
            interface $Properties {
                name?: (string|null);

                datatype?: (string|null);

                shape?: ((number|bigint)[]|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelMetadataResponse.TensorMetadata.$Properties;
        }
    }

    interface IInferParameter extends inference.InferParameter.$Properties {
    }

    class InferParameter {
        constructor(properties?: inference.InferParameter.$Properties);

        $unknowns?: Uint8Array[];

        boolParam?: (boolean|null);

        int64Param?: (number|bigint|null);

        stringParam?: (string|null);

        doubleParam?: (number|null);

        uint64Param?: (number|bigint|null);

        parameterChoice?: ("boolParam"|"int64Param"|"stringParam"|"doubleParam"|"uint64Param");

        static encode(message: inference.InferParameter.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.InferParameter & inference.InferParameter.$Shape;

        static fromObject(object: { [k: string]: any }): inference.InferParameter;
    }

    namespace InferParameter {
        interface $Properties {
            boolParam?: (boolean|null);

            int64Param?: (number|bigint|null);

            stringParam?: (string|null);

            doubleParam?: (number|null);

            uint64Param?: (number|bigint|null);

            parameterChoice?: ("boolParam"|"int64Param"|"stringParam"|"doubleParam"|"uint64Param");

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          boolParam?: boolean|null;
          int64Param?: number|bigint|null;
          stringParam?: string|null;
          doubleParam?: number|null;
          uint64Param?: number|bigint|null;
          $unknowns?: Uint8Array[];
        } & (
          ({ parameterChoice?: undefined; boolParam?: null; int64Param?: null; stringParam?: null; doubleParam?: null; uint64Param?: null }|{ parameterChoice?: "boolParam"; boolParam: boolean; int64Param?: null; stringParam?: null; doubleParam?: null; uint64Param?: null }|{ parameterChoice?: "int64Param"; boolParam?: null; int64Param: number|bigint; stringParam?: null; doubleParam?: null; uint64Param?: null }|{ parameterChoice?: "stringParam"; boolParam?: null; int64Param?: null; stringParam: string; doubleParam?: null; uint64Param?: null }|{ parameterChoice?: "doubleParam"; boolParam?: null; int64Param?: null; stringParam?: null; doubleParam: number; uint64Param?: null }|{ parameterChoice?: "uint64Param"; boolParam?: null; int64Param?: null; stringParam?: null; doubleParam?: null; uint64Param: number|bigint })
        );
    }

    interface IInferTensorContents extends inference.InferTensorContents.$Properties {
    }

    class InferTensorContents {
        constructor(properties?: inference.InferTensorContents.$Properties);

        $unknowns?: Uint8Array[];

        boolContents: boolean[];

        intContents: number[];

        int64Contents: (number|bigint)[];

        uintContents: number[];

        uint64Contents: (number|bigint)[];

        fp32Contents: number[];

        fp64Contents: number[];

        bytesContents: Uint8Array[];

        static encode(message: inference.InferTensorContents.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.InferTensorContents & inference.InferTensorContents.$Shape;

        static fromObject(object: { [k: string]: any }): inference.InferTensorContents;
    }

    namespace InferTensorContents {
        interface $Properties {
            boolContents?: (boolean[]|null);

            intContents?: (number[]|null);

            int64Contents?: ((number|bigint)[]|null);

            uintContents?: (number[]|null);

            uint64Contents?: ((number|bigint)[]|null);

            fp32Contents?: (number[]|null);

            fp64Contents?: (number[]|null);

            bytesContents?: (Uint8Array[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.InferTensorContents.$Properties;
    }

    interface IModelInferRequest extends inference.ModelInferRequest.$Properties {
    }

    class ModelInferRequest {
        constructor(properties?: inference.ModelInferRequest.$Properties);

        $unknowns?: Uint8Array[];

        modelName: string;

        modelVersion: string;

        id: string;

        parameters: { [k: string]: inference.InferParameter.$Properties };

        inputs: inference.ModelInferRequest.InferInputTensor.$Properties[];

        outputs: inference.ModelInferRequest.InferRequestedOutputTensor.$Properties[];

        rawInputContents: Uint8Array[];

        static encode(message: inference.ModelInferRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInferRequest & inference.ModelInferRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelInferRequest;
    }

    namespace ModelInferRequest {
        interface $Properties {
            modelName?: (string|null);

            modelVersion?: (string|null);

            id?: (string|null);

            parameters?: ({ [k: string]: inference.InferParameter.$Properties }|null);

            inputs?: (inference.ModelInferRequest.InferInputTensor.$Properties[]|null);

            outputs?: (inference.ModelInferRequest.InferRequestedOutputTensor.$Properties[]|null);

            rawInputContents?: (Uint8Array[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          modelName?: string|null;
          modelVersion?: string|null;
          id?: string|null;
          parameters?: { [k: string]: inference.InferParameter.$Shape }|null;
          inputs?: inference.ModelInferRequest.InferInputTensor.$Shape[]|null;
          outputs?: inference.ModelInferRequest.InferRequestedOutputTensor.$Shape[]|null;
          rawInputContents?: Uint8Array[]|null;
          $unknowns?: Uint8Array[];
        };

        interface IInferInputTensor extends inference.ModelInferRequest.InferInputTensor.$Properties {
        }

        class InferInputTensor {
            constructor(properties?: inference.ModelInferRequest.InferInputTensor.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            datatype: string;

            shape: (number|bigint)[];

            parameters: { [k: string]: inference.InferParameter.$Properties };

            contents?: (inference.InferTensorContents.$Properties|null);

            static encode(message: inference.ModelInferRequest.InferInputTensor.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInferRequest.InferInputTensor & inference.ModelInferRequest.InferInputTensor.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelInferRequest.InferInputTensor;
        }

        namespace InferInputTensor {
            interface $Properties {
                name?: (string|null);

                datatype?: (string|null);

                shape?: ((number|bigint)[]|null);

                parameters?: ({ [k: string]: inference.InferParameter.$Properties }|null);

                contents?: (inference.InferTensorContents.$Properties|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              name?: string|null;
              datatype?: string|null;
              shape?: (number|bigint)[]|null;
              parameters?: { [k: string]: inference.InferParameter.$Shape }|null;
              contents?: inference.InferTensorContents.$Shape|null;
              $unknowns?: Uint8Array[];
            };
        }

        interface IInferRequestedOutputTensor extends inference.ModelInferRequest.InferRequestedOutputTensor.$Properties {
        }

        class InferRequestedOutputTensor {
            constructor(properties?: inference.ModelInferRequest.InferRequestedOutputTensor.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            parameters: { [k: string]: inference.InferParameter.$Properties };

            static encode(message: inference.ModelInferRequest.InferRequestedOutputTensor.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInferRequest.InferRequestedOutputTensor & inference.ModelInferRequest.InferRequestedOutputTensor.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelInferRequest.InferRequestedOutputTensor;
        }

        namespace InferRequestedOutputTensor {
            interface $Properties {
                name?: (string|null);

                parameters?: ({ [k: string]: inference.InferParameter.$Properties }|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              name?: string|null;
              parameters?: { [k: string]: inference.InferParameter.$Shape }|null;
              $unknowns?: Uint8Array[];
            };
        }
    }

    interface IModelInferResponse extends inference.ModelInferResponse.$Properties {
    }

    class ModelInferResponse {
        constructor(properties?: inference.ModelInferResponse.$Properties);

        $unknowns?: Uint8Array[];

        modelName: string;

        modelVersion: string;

        id: string;

        parameters: { [k: string]: inference.InferParameter.$Properties };

        outputs: inference.ModelInferResponse.InferOutputTensor.$Properties[];

        rawOutputContents: Uint8Array[];

        static encode(message: inference.ModelInferResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInferResponse & inference.ModelInferResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelInferResponse;
    }

    namespace ModelInferResponse {
        interface $Properties {
            modelName?: (string|null);

            modelVersion?: (string|null);

            id?: (string|null);

            parameters?: ({ [k: string]: inference.InferParameter.$Properties }|null);

            outputs?: (inference.ModelInferResponse.InferOutputTensor.$Properties[]|null);

            rawOutputContents?: (Uint8Array[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          modelName?: string|null;
          modelVersion?: string|null;
          id?: string|null;
          parameters?: { [k: string]: inference.InferParameter.$Shape }|null;
          outputs?: inference.ModelInferResponse.InferOutputTensor.$Shape[]|null;
          rawOutputContents?: Uint8Array[]|null;
          $unknowns?: Uint8Array[];
        };

        interface IInferOutputTensor extends inference.ModelInferResponse.InferOutputTensor.$Properties {
        }

        class InferOutputTensor {
            constructor(properties?: inference.ModelInferResponse.InferOutputTensor.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            datatype: string;

            shape: (number|bigint)[];

            parameters: { [k: string]: inference.InferParameter.$Properties };

            contents?: (inference.InferTensorContents.$Properties|null);

            static encode(message: inference.ModelInferResponse.InferOutputTensor.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInferResponse.InferOutputTensor & inference.ModelInferResponse.InferOutputTensor.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelInferResponse.InferOutputTensor;
        }

        namespace InferOutputTensor {
            interface $Properties {
                name?: (string|null);

                datatype?: (string|null);

                shape?: ((number|bigint)[]|null);

                parameters?: ({ [k: string]: inference.InferParameter.$Properties }|null);

                contents?: (inference.InferTensorContents.$Properties|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              name?: string|null;
              datatype?: string|null;
              shape?: (number|bigint)[]|null;
              parameters?: { [k: string]: inference.InferParameter.$Shape }|null;
              contents?: inference.InferTensorContents.$Shape|null;
              $unknowns?: Uint8Array[];
            };
        }
    }

    interface IModelStreamInferResponse extends inference.ModelStreamInferResponse.$Properties {
    }

    class ModelStreamInferResponse {
        constructor(properties?: inference.ModelStreamInferResponse.$Properties);

        $unknowns?: Uint8Array[];

        errorMessage: string;

        inferResponse?: (inference.ModelInferResponse.$Properties|null);

        static encode(message: inference.ModelStreamInferResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelStreamInferResponse & inference.ModelStreamInferResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelStreamInferResponse;
    }

    namespace ModelStreamInferResponse {
        interface $Properties {
            errorMessage?: (string|null);

            inferResponse?: (inference.ModelInferResponse.$Properties|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          errorMessage?: string|null;
          inferResponse?: inference.ModelInferResponse.$Shape|null;
          $unknowns?: Uint8Array[];
        };
    }

    interface IModelConfigRequest extends inference.ModelConfigRequest.$Properties {
    }

    class ModelConfigRequest {
        constructor(properties?: inference.ModelConfigRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        version: string;

        static encode(message: inference.ModelConfigRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelConfigRequest & inference.ModelConfigRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelConfigRequest;
    }

    namespace ModelConfigRequest {
        interface $Properties {
            name?: (string|null);

            version?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelConfigRequest.$Properties;
    }

    interface IModelConfigResponse extends inference.ModelConfigResponse.$Properties {
    }

    class ModelConfigResponse {
        constructor(properties?: inference.ModelConfigResponse.$Properties);

        $unknowns?: Uint8Array[];

        config?: (inference.ModelConfig.$Properties|null);

        static encode(message: inference.ModelConfigResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelConfigResponse & inference.ModelConfigResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelConfigResponse;
    }

    namespace ModelConfigResponse {
        interface $Properties {
            config?: (inference.ModelConfig.$Properties|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          config?: inference.ModelConfig.$Shape|null;
          $unknowns?: Uint8Array[];
        };
    }

    interface IModelStatisticsRequest extends inference.ModelStatisticsRequest.$Properties {
    }

    class ModelStatisticsRequest {
        constructor(properties?: inference.ModelStatisticsRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        version: string;

        static encode(message: inference.ModelStatisticsRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelStatisticsRequest & inference.ModelStatisticsRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelStatisticsRequest;
    }

    namespace ModelStatisticsRequest {
        interface $Properties {
            name?: (string|null);

            version?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelStatisticsRequest.$Properties;
    }

    interface IStatisticDuration extends inference.StatisticDuration.$Properties {
    }

    class StatisticDuration {
        constructor(properties?: inference.StatisticDuration.$Properties);

        $unknowns?: Uint8Array[];

        count: (number|bigint);

        ns: (number|bigint);

        static encode(message: inference.StatisticDuration.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.StatisticDuration & inference.StatisticDuration.$Shape;

        static fromObject(object: { [k: string]: any }): inference.StatisticDuration;
    }

    namespace StatisticDuration {
        interface $Properties {
            count?: (number|bigint|null);

            ns?: (number|bigint|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.StatisticDuration.$Properties;
    }

    interface IInferStatistics extends inference.InferStatistics.$Properties {
    }

    class InferStatistics {
        constructor(properties?: inference.InferStatistics.$Properties);

        $unknowns?: Uint8Array[];

        success?: (inference.StatisticDuration.$Properties|null);

        fail?: (inference.StatisticDuration.$Properties|null);

        queue?: (inference.StatisticDuration.$Properties|null);

        computeInput?: (inference.StatisticDuration.$Properties|null);

        computeInfer?: (inference.StatisticDuration.$Properties|null);

        computeOutput?: (inference.StatisticDuration.$Properties|null);

        cacheHit?: (inference.StatisticDuration.$Properties|null);

        cacheMiss?: (inference.StatisticDuration.$Properties|null);

        static encode(message: inference.InferStatistics.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.InferStatistics & inference.InferStatistics.$Shape;

        static fromObject(object: { [k: string]: any }): inference.InferStatistics;
    }

    namespace InferStatistics {
        interface $Properties {
            success?: (inference.StatisticDuration.$Properties|null);

            fail?: (inference.StatisticDuration.$Properties|null);

            queue?: (inference.StatisticDuration.$Properties|null);

            computeInput?: (inference.StatisticDuration.$Properties|null);

            computeInfer?: (inference.StatisticDuration.$Properties|null);

            computeOutput?: (inference.StatisticDuration.$Properties|null);

            cacheHit?: (inference.StatisticDuration.$Properties|null);

            cacheMiss?: (inference.StatisticDuration.$Properties|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.InferStatistics.$Properties;
    }

    interface IInferResponseStatistics extends inference.InferResponseStatistics.$Properties {
    }

    class InferResponseStatistics {
        constructor(properties?: inference.InferResponseStatistics.$Properties);

        $unknowns?: Uint8Array[];

        computeInfer?: (inference.StatisticDuration.$Properties|null);

        computeOutput?: (inference.StatisticDuration.$Properties|null);

        success?: (inference.StatisticDuration.$Properties|null);

        fail?: (inference.StatisticDuration.$Properties|null);

        emptyResponse?: (inference.StatisticDuration.$Properties|null);

        cancel?: (inference.StatisticDuration.$Properties|null);

        static encode(message: inference.InferResponseStatistics.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.InferResponseStatistics & inference.InferResponseStatistics.$Shape;

        static fromObject(object: { [k: string]: any }): inference.InferResponseStatistics;
    }

    namespace InferResponseStatistics {
        interface $Properties {
            computeInfer?: (inference.StatisticDuration.$Properties|null);

            computeOutput?: (inference.StatisticDuration.$Properties|null);

            success?: (inference.StatisticDuration.$Properties|null);

            fail?: (inference.StatisticDuration.$Properties|null);

            emptyResponse?: (inference.StatisticDuration.$Properties|null);

            cancel?: (inference.StatisticDuration.$Properties|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.InferResponseStatistics.$Properties;
    }

    interface IInferBatchStatistics extends inference.InferBatchStatistics.$Properties {
    }

    class InferBatchStatistics {
        constructor(properties?: inference.InferBatchStatistics.$Properties);

        $unknowns?: Uint8Array[];

        batchSize: (number|bigint);

        computeInput?: (inference.StatisticDuration.$Properties|null);

        computeInfer?: (inference.StatisticDuration.$Properties|null);

        computeOutput?: (inference.StatisticDuration.$Properties|null);

        static encode(message: inference.InferBatchStatistics.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.InferBatchStatistics & inference.InferBatchStatistics.$Shape;

        static fromObject(object: { [k: string]: any }): inference.InferBatchStatistics;
    }

    namespace InferBatchStatistics {
        interface $Properties {
            batchSize?: (number|bigint|null);

            computeInput?: (inference.StatisticDuration.$Properties|null);

            computeInfer?: (inference.StatisticDuration.$Properties|null);

            computeOutput?: (inference.StatisticDuration.$Properties|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.InferBatchStatistics.$Properties;
    }

    interface IMemoryUsage extends inference.MemoryUsage.$Properties {
    }

    class MemoryUsage {
        constructor(properties?: inference.MemoryUsage.$Properties);

        $unknowns?: Uint8Array[];

        type: string;

        id: (number|bigint);

        byteSize: (number|bigint);

        static encode(message: inference.MemoryUsage.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.MemoryUsage & inference.MemoryUsage.$Shape;

        static fromObject(object: { [k: string]: any }): inference.MemoryUsage;
    }

    namespace MemoryUsage {
        interface $Properties {
            type?: (string|null);

            id?: (number|bigint|null);

            byteSize?: (number|bigint|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.MemoryUsage.$Properties;
    }

    interface IModelStatistics extends inference.ModelStatistics.$Properties {
    }

    class ModelStatistics {
        constructor(properties?: inference.ModelStatistics.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        version: string;

        lastInference: (number|bigint);

        inferenceCount: (number|bigint);

        executionCount: (number|bigint);

        inferenceStats?: (inference.InferStatistics.$Properties|null);

        batchStats: inference.InferBatchStatistics.$Properties[];

        memoryUsage: inference.MemoryUsage.$Properties[];

        responseStats: { [k: string]: inference.InferResponseStatistics.$Properties };

        static encode(message: inference.ModelStatistics.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelStatistics & inference.ModelStatistics.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelStatistics;
    }

    namespace ModelStatistics {
        interface $Properties {
            name?: (string|null);

            version?: (string|null);

            lastInference?: (number|bigint|null);

            inferenceCount?: (number|bigint|null);

            executionCount?: (number|bigint|null);

            inferenceStats?: (inference.InferStatistics.$Properties|null);

            batchStats?: (inference.InferBatchStatistics.$Properties[]|null);

            memoryUsage?: (inference.MemoryUsage.$Properties[]|null);

            responseStats?: ({ [k: string]: inference.InferResponseStatistics.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelStatistics.$Properties;
    }

    interface IModelStatisticsResponse extends inference.ModelStatisticsResponse.$Properties {
    }

    class ModelStatisticsResponse {
        constructor(properties?: inference.ModelStatisticsResponse.$Properties);

        $unknowns?: Uint8Array[];

        modelStats: inference.ModelStatistics.$Properties[];

        static encode(message: inference.ModelStatisticsResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelStatisticsResponse & inference.ModelStatisticsResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelStatisticsResponse;
    }

    namespace ModelStatisticsResponse {
        interface $Properties {
            modelStats?: (inference.ModelStatistics.$Properties[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelStatisticsResponse.$Properties;
    }

    interface IModelRepositoryParameter extends inference.ModelRepositoryParameter.$Properties {
    }

    class ModelRepositoryParameter {
        constructor(properties?: inference.ModelRepositoryParameter.$Properties);

        $unknowns?: Uint8Array[];

        boolParam?: (boolean|null);

        int64Param?: (number|bigint|null);

        stringParam?: (string|null);

        bytesParam?: (Uint8Array|null);

        parameterChoice?: ("boolParam"|"int64Param"|"stringParam"|"bytesParam");

        static encode(message: inference.ModelRepositoryParameter.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelRepositoryParameter & inference.ModelRepositoryParameter.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelRepositoryParameter;
    }

    namespace ModelRepositoryParameter {
        interface $Properties {
            boolParam?: (boolean|null);

            int64Param?: (number|bigint|null);

            stringParam?: (string|null);

            bytesParam?: (Uint8Array|null);

            parameterChoice?: ("boolParam"|"int64Param"|"stringParam"|"bytesParam");

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          boolParam?: boolean|null;
          int64Param?: number|bigint|null;
          stringParam?: string|null;
          bytesParam?: Uint8Array|null;
          $unknowns?: Uint8Array[];
        } & (
          ({ parameterChoice?: undefined; boolParam?: null; int64Param?: null; stringParam?: null; bytesParam?: null }|{ parameterChoice?: "boolParam"; boolParam: boolean; int64Param?: null; stringParam?: null; bytesParam?: null }|{ parameterChoice?: "int64Param"; boolParam?: null; int64Param: number|bigint; stringParam?: null; bytesParam?: null }|{ parameterChoice?: "stringParam"; boolParam?: null; int64Param?: null; stringParam: string; bytesParam?: null }|{ parameterChoice?: "bytesParam"; boolParam?: null; int64Param?: null; stringParam?: null; bytesParam: Uint8Array })
        );
    }

    interface IRepositoryIndexRequest extends inference.RepositoryIndexRequest.$Properties {
    }

    class RepositoryIndexRequest {
        constructor(properties?: inference.RepositoryIndexRequest.$Properties);

        $unknowns?: Uint8Array[];

        repositoryName: string;

        ready: boolean;

        static encode(message: inference.RepositoryIndexRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.RepositoryIndexRequest & inference.RepositoryIndexRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.RepositoryIndexRequest;
    }

    namespace RepositoryIndexRequest {
        interface $Properties {
            repositoryName?: (string|null);

            ready?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.RepositoryIndexRequest.$Properties;
    }

    interface IRepositoryIndexResponse extends inference.RepositoryIndexResponse.$Properties {
    }

    class RepositoryIndexResponse {
        constructor(properties?: inference.RepositoryIndexResponse.$Properties);

        $unknowns?: Uint8Array[];

        models: inference.RepositoryIndexResponse.ModelIndex.$Properties[];

        static encode(message: inference.RepositoryIndexResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.RepositoryIndexResponse & inference.RepositoryIndexResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.RepositoryIndexResponse;
    }

    namespace RepositoryIndexResponse {
        interface $Properties {
            models?: (inference.RepositoryIndexResponse.ModelIndex.$Properties[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.RepositoryIndexResponse.$Properties;

        interface IModelIndex extends inference.RepositoryIndexResponse.ModelIndex.$Properties {
        }

        class ModelIndex {
            constructor(properties?: inference.RepositoryIndexResponse.ModelIndex.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            version: string;

            state: string;

            reason: string;

            static encode(message: inference.RepositoryIndexResponse.ModelIndex.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.RepositoryIndexResponse.ModelIndex & inference.RepositoryIndexResponse.ModelIndex.$Shape;

            static fromObject(object: { [k: string]: any }): inference.RepositoryIndexResponse.ModelIndex;
        }

        namespace ModelIndex {
            interface $Properties {
                name?: (string|null);

                version?: (string|null);

                state?: (string|null);

                reason?: (string|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.RepositoryIndexResponse.ModelIndex.$Properties;
        }
    }

    interface IRepositoryModelLoadRequest extends inference.RepositoryModelLoadRequest.$Properties {
    }

    class RepositoryModelLoadRequest {
        constructor(properties?: inference.RepositoryModelLoadRequest.$Properties);

        $unknowns?: Uint8Array[];

        repositoryName: string;

        modelName: string;

        parameters: { [k: string]: inference.ModelRepositoryParameter.$Properties };

        static encode(message: inference.RepositoryModelLoadRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.RepositoryModelLoadRequest & inference.RepositoryModelLoadRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.RepositoryModelLoadRequest;
    }

    namespace RepositoryModelLoadRequest {
        interface $Properties {
            repositoryName?: (string|null);

            modelName?: (string|null);

            parameters?: ({ [k: string]: inference.ModelRepositoryParameter.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          repositoryName?: string|null;
          modelName?: string|null;
          parameters?: { [k: string]: inference.ModelRepositoryParameter.$Shape }|null;
          $unknowns?: Uint8Array[];
        };
    }

    interface IRepositoryModelLoadResponse extends inference.RepositoryModelLoadResponse.$Properties {
    }

    class RepositoryModelLoadResponse {
        constructor(properties?: inference.RepositoryModelLoadResponse.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.RepositoryModelLoadResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.RepositoryModelLoadResponse & inference.RepositoryModelLoadResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.RepositoryModelLoadResponse;
    }

    namespace RepositoryModelLoadResponse {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.RepositoryModelLoadResponse.$Properties;
    }

    interface IRepositoryModelUnloadRequest extends inference.RepositoryModelUnloadRequest.$Properties {
    }

    class RepositoryModelUnloadRequest {
        constructor(properties?: inference.RepositoryModelUnloadRequest.$Properties);

        $unknowns?: Uint8Array[];

        repositoryName: string;

        modelName: string;

        parameters: { [k: string]: inference.ModelRepositoryParameter.$Properties };

        static encode(message: inference.RepositoryModelUnloadRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.RepositoryModelUnloadRequest & inference.RepositoryModelUnloadRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.RepositoryModelUnloadRequest;
    }

    namespace RepositoryModelUnloadRequest {
        interface $Properties {
            repositoryName?: (string|null);

            modelName?: (string|null);

            parameters?: ({ [k: string]: inference.ModelRepositoryParameter.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          repositoryName?: string|null;
          modelName?: string|null;
          parameters?: { [k: string]: inference.ModelRepositoryParameter.$Shape }|null;
          $unknowns?: Uint8Array[];
        };
    }

    interface IRepositoryModelUnloadResponse extends inference.RepositoryModelUnloadResponse.$Properties {
    }

    class RepositoryModelUnloadResponse {
        constructor(properties?: inference.RepositoryModelUnloadResponse.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.RepositoryModelUnloadResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.RepositoryModelUnloadResponse & inference.RepositoryModelUnloadResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.RepositoryModelUnloadResponse;
    }

    namespace RepositoryModelUnloadResponse {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.RepositoryModelUnloadResponse.$Properties;
    }

    interface ISystemSharedMemoryStatusRequest extends inference.SystemSharedMemoryStatusRequest.$Properties {
    }

    class SystemSharedMemoryStatusRequest {
        constructor(properties?: inference.SystemSharedMemoryStatusRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        static encode(message: inference.SystemSharedMemoryStatusRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.SystemSharedMemoryStatusRequest & inference.SystemSharedMemoryStatusRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.SystemSharedMemoryStatusRequest;
    }

    namespace SystemSharedMemoryStatusRequest {
        interface $Properties {
            name?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.SystemSharedMemoryStatusRequest.$Properties;
    }

    interface ISystemSharedMemoryStatusResponse extends inference.SystemSharedMemoryStatusResponse.$Properties {
    }

    class SystemSharedMemoryStatusResponse {
        constructor(properties?: inference.SystemSharedMemoryStatusResponse.$Properties);

        $unknowns?: Uint8Array[];

        regions: { [k: string]: inference.SystemSharedMemoryStatusResponse.RegionStatus.$Properties };

        static encode(message: inference.SystemSharedMemoryStatusResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.SystemSharedMemoryStatusResponse & inference.SystemSharedMemoryStatusResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.SystemSharedMemoryStatusResponse;
    }

    namespace SystemSharedMemoryStatusResponse {
        interface $Properties {
            regions?: ({ [k: string]: inference.SystemSharedMemoryStatusResponse.RegionStatus.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.SystemSharedMemoryStatusResponse.$Properties;

        interface IRegionStatus extends inference.SystemSharedMemoryStatusResponse.RegionStatus.$Properties {
        }

        class RegionStatus {
            constructor(properties?: inference.SystemSharedMemoryStatusResponse.RegionStatus.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            key: string;

            offset: (number|bigint);

            byteSize: (number|bigint);

            static encode(message: inference.SystemSharedMemoryStatusResponse.RegionStatus.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.SystemSharedMemoryStatusResponse.RegionStatus & inference.SystemSharedMemoryStatusResponse.RegionStatus.$Shape;

            static fromObject(object: { [k: string]: any }): inference.SystemSharedMemoryStatusResponse.RegionStatus;
        }

        namespace RegionStatus {
            interface $Properties {
                name?: (string|null);

                key?: (string|null);

                offset?: (number|bigint|null);

                byteSize?: (number|bigint|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.SystemSharedMemoryStatusResponse.RegionStatus.$Properties;
        }
    }

    interface ISystemSharedMemoryRegisterRequest extends inference.SystemSharedMemoryRegisterRequest.$Properties {
    }

    class SystemSharedMemoryRegisterRequest {
        constructor(properties?: inference.SystemSharedMemoryRegisterRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        key: string;

        offset: (number|bigint);

        byteSize: (number|bigint);

        static encode(message: inference.SystemSharedMemoryRegisterRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.SystemSharedMemoryRegisterRequest & inference.SystemSharedMemoryRegisterRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.SystemSharedMemoryRegisterRequest;
    }

    namespace SystemSharedMemoryRegisterRequest {
        interface $Properties {
            name?: (string|null);

            key?: (string|null);

            offset?: (number|bigint|null);

            byteSize?: (number|bigint|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.SystemSharedMemoryRegisterRequest.$Properties;
    }

    interface ISystemSharedMemoryRegisterResponse extends inference.SystemSharedMemoryRegisterResponse.$Properties {
    }

    class SystemSharedMemoryRegisterResponse {
        constructor(properties?: inference.SystemSharedMemoryRegisterResponse.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.SystemSharedMemoryRegisterResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.SystemSharedMemoryRegisterResponse & inference.SystemSharedMemoryRegisterResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.SystemSharedMemoryRegisterResponse;
    }

    namespace SystemSharedMemoryRegisterResponse {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.SystemSharedMemoryRegisterResponse.$Properties;
    }

    interface ISystemSharedMemoryUnregisterRequest extends inference.SystemSharedMemoryUnregisterRequest.$Properties {
    }

    class SystemSharedMemoryUnregisterRequest {
        constructor(properties?: inference.SystemSharedMemoryUnregisterRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        static encode(message: inference.SystemSharedMemoryUnregisterRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.SystemSharedMemoryUnregisterRequest & inference.SystemSharedMemoryUnregisterRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.SystemSharedMemoryUnregisterRequest;
    }

    namespace SystemSharedMemoryUnregisterRequest {
        interface $Properties {
            name?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.SystemSharedMemoryUnregisterRequest.$Properties;
    }

    interface ISystemSharedMemoryUnregisterResponse extends inference.SystemSharedMemoryUnregisterResponse.$Properties {
    }

    class SystemSharedMemoryUnregisterResponse {
        constructor(properties?: inference.SystemSharedMemoryUnregisterResponse.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.SystemSharedMemoryUnregisterResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.SystemSharedMemoryUnregisterResponse & inference.SystemSharedMemoryUnregisterResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.SystemSharedMemoryUnregisterResponse;
    }

    namespace SystemSharedMemoryUnregisterResponse {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.SystemSharedMemoryUnregisterResponse.$Properties;
    }

    interface ICudaSharedMemoryStatusRequest extends inference.CudaSharedMemoryStatusRequest.$Properties {
    }

    class CudaSharedMemoryStatusRequest {
        constructor(properties?: inference.CudaSharedMemoryStatusRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        static encode(message: inference.CudaSharedMemoryStatusRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.CudaSharedMemoryStatusRequest & inference.CudaSharedMemoryStatusRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.CudaSharedMemoryStatusRequest;
    }

    namespace CudaSharedMemoryStatusRequest {
        interface $Properties {
            name?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.CudaSharedMemoryStatusRequest.$Properties;
    }

    interface ICudaSharedMemoryStatusResponse extends inference.CudaSharedMemoryStatusResponse.$Properties {
    }

    class CudaSharedMemoryStatusResponse {
        constructor(properties?: inference.CudaSharedMemoryStatusResponse.$Properties);

        $unknowns?: Uint8Array[];

        regions: { [k: string]: inference.CudaSharedMemoryStatusResponse.RegionStatus.$Properties };

        static encode(message: inference.CudaSharedMemoryStatusResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.CudaSharedMemoryStatusResponse & inference.CudaSharedMemoryStatusResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.CudaSharedMemoryStatusResponse;
    }

    namespace CudaSharedMemoryStatusResponse {
        interface $Properties {
            regions?: ({ [k: string]: inference.CudaSharedMemoryStatusResponse.RegionStatus.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.CudaSharedMemoryStatusResponse.$Properties;

        interface IRegionStatus extends inference.CudaSharedMemoryStatusResponse.RegionStatus.$Properties {
        }

        class RegionStatus {
            constructor(properties?: inference.CudaSharedMemoryStatusResponse.RegionStatus.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            deviceId: (number|bigint);

            byteSize: (number|bigint);

            static encode(message: inference.CudaSharedMemoryStatusResponse.RegionStatus.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.CudaSharedMemoryStatusResponse.RegionStatus & inference.CudaSharedMemoryStatusResponse.RegionStatus.$Shape;

            static fromObject(object: { [k: string]: any }): inference.CudaSharedMemoryStatusResponse.RegionStatus;
        }

        namespace RegionStatus {
            interface $Properties {
                name?: (string|null);

                deviceId?: (number|bigint|null);

                byteSize?: (number|bigint|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.CudaSharedMemoryStatusResponse.RegionStatus.$Properties;
        }
    }

    interface ICudaSharedMemoryRegisterRequest extends inference.CudaSharedMemoryRegisterRequest.$Properties {
    }

    class CudaSharedMemoryRegisterRequest {
        constructor(properties?: inference.CudaSharedMemoryRegisterRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        rawHandle: Uint8Array;

        deviceId: (number|bigint);

        byteSize: (number|bigint);

        static encode(message: inference.CudaSharedMemoryRegisterRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.CudaSharedMemoryRegisterRequest & inference.CudaSharedMemoryRegisterRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.CudaSharedMemoryRegisterRequest;
    }

    namespace CudaSharedMemoryRegisterRequest {
        interface $Properties {
            name?: (string|null);

            rawHandle?: (Uint8Array|null);

            deviceId?: (number|bigint|null);

            byteSize?: (number|bigint|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.CudaSharedMemoryRegisterRequest.$Properties;
    }

    interface ICudaSharedMemoryRegisterResponse extends inference.CudaSharedMemoryRegisterResponse.$Properties {
    }

    class CudaSharedMemoryRegisterResponse {
        constructor(properties?: inference.CudaSharedMemoryRegisterResponse.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.CudaSharedMemoryRegisterResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.CudaSharedMemoryRegisterResponse & inference.CudaSharedMemoryRegisterResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.CudaSharedMemoryRegisterResponse;
    }

    namespace CudaSharedMemoryRegisterResponse {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.CudaSharedMemoryRegisterResponse.$Properties;
    }

    interface ICudaSharedMemoryUnregisterRequest extends inference.CudaSharedMemoryUnregisterRequest.$Properties {
    }

    class CudaSharedMemoryUnregisterRequest {
        constructor(properties?: inference.CudaSharedMemoryUnregisterRequest.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        static encode(message: inference.CudaSharedMemoryUnregisterRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.CudaSharedMemoryUnregisterRequest & inference.CudaSharedMemoryUnregisterRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.CudaSharedMemoryUnregisterRequest;
    }

    namespace CudaSharedMemoryUnregisterRequest {
        interface $Properties {
            name?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.CudaSharedMemoryUnregisterRequest.$Properties;
    }

    interface ICudaSharedMemoryUnregisterResponse extends inference.CudaSharedMemoryUnregisterResponse.$Properties {
    }

    class CudaSharedMemoryUnregisterResponse {
        constructor(properties?: inference.CudaSharedMemoryUnregisterResponse.$Properties);

        $unknowns?: Uint8Array[];

        static encode(message: inference.CudaSharedMemoryUnregisterResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.CudaSharedMemoryUnregisterResponse & inference.CudaSharedMemoryUnregisterResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.CudaSharedMemoryUnregisterResponse;
    }

    namespace CudaSharedMemoryUnregisterResponse {
        interface $Properties {
            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.CudaSharedMemoryUnregisterResponse.$Properties;
    }

    interface ITraceSettingRequest extends inference.TraceSettingRequest.$Properties {
    }

    class TraceSettingRequest {
        constructor(properties?: inference.TraceSettingRequest.$Properties);

        $unknowns?: Uint8Array[];

        settings: { [k: string]: inference.TraceSettingRequest.SettingValue.$Properties };

        modelName: string;

        static encode(message: inference.TraceSettingRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.TraceSettingRequest & inference.TraceSettingRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.TraceSettingRequest;
    }

    namespace TraceSettingRequest {
        interface $Properties {
            settings?: ({ [k: string]: inference.TraceSettingRequest.SettingValue.$Properties }|null);

            modelName?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.TraceSettingRequest.$Properties;

        interface ISettingValue extends inference.TraceSettingRequest.SettingValue.$Properties {
        }

        class SettingValue {
            constructor(properties?: inference.TraceSettingRequest.SettingValue.$Properties);

            $unknowns?: Uint8Array[];

            value: string[];

            static encode(message: inference.TraceSettingRequest.SettingValue.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.TraceSettingRequest.SettingValue & inference.TraceSettingRequest.SettingValue.$Shape;

            static fromObject(object: { [k: string]: any }): inference.TraceSettingRequest.SettingValue;
        }

        namespace SettingValue {
            interface $Properties {
                value?: (string[]|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.TraceSettingRequest.SettingValue.$Properties;
        }
    }

    interface ITraceSettingResponse extends inference.TraceSettingResponse.$Properties {
    }

    class TraceSettingResponse {
        constructor(properties?: inference.TraceSettingResponse.$Properties);

        $unknowns?: Uint8Array[];

        settings: { [k: string]: inference.TraceSettingResponse.SettingValue.$Properties };

        static encode(message: inference.TraceSettingResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.TraceSettingResponse & inference.TraceSettingResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.TraceSettingResponse;
    }

    namespace TraceSettingResponse {
        interface $Properties {
            settings?: ({ [k: string]: inference.TraceSettingResponse.SettingValue.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.TraceSettingResponse.$Properties;

        interface ISettingValue extends inference.TraceSettingResponse.SettingValue.$Properties {
        }

        class SettingValue {
            constructor(properties?: inference.TraceSettingResponse.SettingValue.$Properties);

            $unknowns?: Uint8Array[];

            value: string[];

            static encode(message: inference.TraceSettingResponse.SettingValue.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.TraceSettingResponse.SettingValue & inference.TraceSettingResponse.SettingValue.$Shape;

            static fromObject(object: { [k: string]: any }): inference.TraceSettingResponse.SettingValue;
        }

        namespace SettingValue {
            interface $Properties {
                value?: (string[]|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.TraceSettingResponse.SettingValue.$Properties;
        }
    }

    interface ILogSettingsRequest extends inference.LogSettingsRequest.$Properties {
    }

    class LogSettingsRequest {
        constructor(properties?: inference.LogSettingsRequest.$Properties);

        $unknowns?: Uint8Array[];

        settings: { [k: string]: inference.LogSettingsRequest.SettingValue.$Properties };

        static encode(message: inference.LogSettingsRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.LogSettingsRequest & inference.LogSettingsRequest.$Shape;

        static fromObject(object: { [k: string]: any }): inference.LogSettingsRequest;
    }

    namespace LogSettingsRequest {
        interface $Properties {
            settings?: ({ [k: string]: inference.LogSettingsRequest.SettingValue.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          settings?: { [k: string]: inference.LogSettingsRequest.SettingValue.$Shape }|null;
          $unknowns?: Uint8Array[];
        };

        interface ISettingValue extends inference.LogSettingsRequest.SettingValue.$Properties {
        }

        class SettingValue {
            constructor(properties?: inference.LogSettingsRequest.SettingValue.$Properties);

            $unknowns?: Uint8Array[];

            boolParam?: (boolean|null);

            uint32Param?: (number|null);

            stringParam?: (string|null);

            parameterChoice?: ("boolParam"|"uint32Param"|"stringParam");

            static encode(message: inference.LogSettingsRequest.SettingValue.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.LogSettingsRequest.SettingValue & inference.LogSettingsRequest.SettingValue.$Shape;

            static fromObject(object: { [k: string]: any }): inference.LogSettingsRequest.SettingValue;
        }

        namespace SettingValue {
            interface $Properties {
                boolParam?: (boolean|null);

                uint32Param?: (number|null);

                stringParam?: (string|null);

                parameterChoice?: ("boolParam"|"uint32Param"|"stringParam");

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              boolParam?: boolean|null;
              uint32Param?: number|null;
              stringParam?: string|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ parameterChoice?: undefined; boolParam?: null; uint32Param?: null; stringParam?: null }|{ parameterChoice?: "boolParam"; boolParam: boolean; uint32Param?: null; stringParam?: null }|{ parameterChoice?: "uint32Param"; boolParam?: null; uint32Param: number; stringParam?: null }|{ parameterChoice?: "stringParam"; boolParam?: null; uint32Param?: null; stringParam: string })
            );
        }
    }

    interface ILogSettingsResponse extends inference.LogSettingsResponse.$Properties {
    }

    class LogSettingsResponse {
        constructor(properties?: inference.LogSettingsResponse.$Properties);

        $unknowns?: Uint8Array[];

        settings: { [k: string]: inference.LogSettingsResponse.SettingValue.$Properties };

        static encode(message: inference.LogSettingsResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.LogSettingsResponse & inference.LogSettingsResponse.$Shape;

        static fromObject(object: { [k: string]: any }): inference.LogSettingsResponse;
    }

    namespace LogSettingsResponse {
        interface $Properties {
            settings?: ({ [k: string]: inference.LogSettingsResponse.SettingValue.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          settings?: { [k: string]: inference.LogSettingsResponse.SettingValue.$Shape }|null;
          $unknowns?: Uint8Array[];
        };

        interface ISettingValue extends inference.LogSettingsResponse.SettingValue.$Properties {
        }

        class SettingValue {
            constructor(properties?: inference.LogSettingsResponse.SettingValue.$Properties);

            $unknowns?: Uint8Array[];

            boolParam?: (boolean|null);

            uint32Param?: (number|null);

            stringParam?: (string|null);

            parameterChoice?: ("boolParam"|"uint32Param"|"stringParam");

            static encode(message: inference.LogSettingsResponse.SettingValue.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.LogSettingsResponse.SettingValue & inference.LogSettingsResponse.SettingValue.$Shape;

            static fromObject(object: { [k: string]: any }): inference.LogSettingsResponse.SettingValue;
        }

        namespace SettingValue {
            interface $Properties {
                boolParam?: (boolean|null);

                uint32Param?: (number|null);

                stringParam?: (string|null);

                parameterChoice?: ("boolParam"|"uint32Param"|"stringParam");

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              boolParam?: boolean|null;
              uint32Param?: number|null;
              stringParam?: string|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ parameterChoice?: undefined; boolParam?: null; uint32Param?: null; stringParam?: null }|{ parameterChoice?: "boolParam"; boolParam: boolean; uint32Param?: null; stringParam?: null }|{ parameterChoice?: "uint32Param"; boolParam?: null; uint32Param: number; stringParam?: null }|{ parameterChoice?: "stringParam"; boolParam?: null; uint32Param?: null; stringParam: string })
            );
        }
    }

    enum DataType {
        TYPE_INVALID = 0,

        TYPE_BOOL = 1,

        TYPE_UINT8 = 2,

        TYPE_UINT16 = 3,

        TYPE_UINT32 = 4,

        TYPE_UINT64 = 5,

        TYPE_INT8 = 6,

        TYPE_INT16 = 7,

        TYPE_INT32 = 8,

        TYPE_INT64 = 9,

        TYPE_FP16 = 10,

        TYPE_FP32 = 11,

        TYPE_FP64 = 12,

        TYPE_STRING = 13,

        TYPE_BF16 = 14
    }

    interface IModelRateLimiter extends inference.ModelRateLimiter.$Properties {
    }

    class ModelRateLimiter {
        constructor(properties?: inference.ModelRateLimiter.$Properties);

        $unknowns?: Uint8Array[];

        resources: inference.ModelRateLimiter.Resource.$Properties[];

        priority: number;

        static encode(message: inference.ModelRateLimiter.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelRateLimiter & inference.ModelRateLimiter.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelRateLimiter;

        static toObject(message: inference.ModelRateLimiter, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelRateLimiter {
        interface $Properties {
            resources?: (inference.ModelRateLimiter.Resource.$Properties[]|null);

            priority?: (number|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelRateLimiter.$Properties;

        interface IResource extends inference.ModelRateLimiter.Resource.$Properties {
        }

        class Resource {
            constructor(properties?: inference.ModelRateLimiter.Resource.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            global: boolean;

            count: number;

            static encode(message: inference.ModelRateLimiter.Resource.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelRateLimiter.Resource & inference.ModelRateLimiter.Resource.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelRateLimiter.Resource;

            static toObject(message: inference.ModelRateLimiter.Resource, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Resource {
            interface $Properties {
                name?: (string|null);

                global?: (boolean|null);

                count?: (number|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelRateLimiter.Resource.$Properties;
        }
    }

    interface IModelInstanceGroup extends inference.ModelInstanceGroup.$Properties {
    }

    class ModelInstanceGroup {
        constructor(properties?: inference.ModelInstanceGroup.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        kind: inference.ModelInstanceGroup.Kind;

        count: number;

        rateLimiter?: (inference.ModelRateLimiter.$Properties|null);

        gpus: number[];

        secondaryDevices: inference.ModelInstanceGroup.SecondaryDevice.$Properties[];

        profile: string[];

        passive: boolean;

        hostPolicy: string;

        static encode(message: inference.ModelInstanceGroup.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInstanceGroup & inference.ModelInstanceGroup.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelInstanceGroup;

        static toObject(message: inference.ModelInstanceGroup, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelInstanceGroup {
        interface $Properties {
            name?: (string|null);

            kind?: (inference.ModelInstanceGroup.Kind|null);

            count?: (number|null);

            rateLimiter?: (inference.ModelRateLimiter.$Properties|null);

            gpus?: (number[]|null);

            secondaryDevices?: (inference.ModelInstanceGroup.SecondaryDevice.$Properties[]|null);

            profile?: (string[]|null);

            passive?: (boolean|null);

            hostPolicy?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelInstanceGroup.$Properties;

        enum Kind {
            KIND_AUTO = 0,

            KIND_GPU = 1,

            KIND_CPU = 2,

            KIND_MODEL = 3
        }

        interface ISecondaryDevice extends inference.ModelInstanceGroup.SecondaryDevice.$Properties {
        }

        class SecondaryDevice {
            constructor(properties?: inference.ModelInstanceGroup.SecondaryDevice.$Properties);

            $unknowns?: Uint8Array[];

            kind: inference.ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind;

            deviceId: (number|bigint);

            static encode(message: inference.ModelInstanceGroup.SecondaryDevice.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInstanceGroup.SecondaryDevice & inference.ModelInstanceGroup.SecondaryDevice.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelInstanceGroup.SecondaryDevice;

            static toObject(message: inference.ModelInstanceGroup.SecondaryDevice, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace SecondaryDevice {
            interface $Properties {
                kind?: (inference.ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind|null);

                deviceId?: (number|bigint|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelInstanceGroup.SecondaryDevice.$Properties;

            enum SecondaryDeviceKind {
                KIND_NVDLA = 0
            }
        }
    }

    interface IModelTensorReshape extends inference.ModelTensorReshape.$Properties {
    }

    class ModelTensorReshape {
        constructor(properties?: inference.ModelTensorReshape.$Properties);

        $unknowns?: Uint8Array[];

        shape: (number|bigint)[];

        static encode(message: inference.ModelTensorReshape.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelTensorReshape & inference.ModelTensorReshape.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelTensorReshape;

        static toObject(message: inference.ModelTensorReshape, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelTensorReshape {
        interface $Properties {
            shape?: ((number|bigint)[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelTensorReshape.$Properties;
    }

    interface IModelInput extends inference.ModelInput.$Properties {
    }

    class ModelInput {
        constructor(properties?: inference.ModelInput.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        dataType: inference.DataType;

        format: inference.ModelInput.Format;

        dims: (number|bigint)[];

        reshape?: (inference.ModelTensorReshape.$Properties|null);

        isShapeTensor: boolean;

        allowRaggedBatch: boolean;

        optional: boolean;

        isNonLinearFormatIo: boolean;

        static encode(message: inference.ModelInput.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelInput & inference.ModelInput.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelInput;

        static toObject(message: inference.ModelInput, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelInput {
        interface $Properties {
            name?: (string|null);

            dataType?: (inference.DataType|null);

            format?: (inference.ModelInput.Format|null);

            dims?: ((number|bigint)[]|null);

            reshape?: (inference.ModelTensorReshape.$Properties|null);

            isShapeTensor?: (boolean|null);

            allowRaggedBatch?: (boolean|null);

            optional?: (boolean|null);

            isNonLinearFormatIo?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelInput.$Properties;

        enum Format {
            FORMAT_NONE = 0,

            FORMAT_NHWC = 1,

            FORMAT_NCHW = 2
        }
    }

    interface IModelOutput extends inference.ModelOutput.$Properties {
    }

    class ModelOutput {
        constructor(properties?: inference.ModelOutput.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        dataType: inference.DataType;

        dims: (number|bigint)[];

        reshape?: (inference.ModelTensorReshape.$Properties|null);

        labelFilename: string;

        isShapeTensor: boolean;

        isNonLinearFormatIo: boolean;

        static encode(message: inference.ModelOutput.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOutput & inference.ModelOutput.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelOutput;

        static toObject(message: inference.ModelOutput, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelOutput {
        interface $Properties {
            name?: (string|null);

            dataType?: (inference.DataType|null);

            dims?: ((number|bigint)[]|null);

            reshape?: (inference.ModelTensorReshape.$Properties|null);

            labelFilename?: (string|null);

            isShapeTensor?: (boolean|null);

            isNonLinearFormatIo?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelOutput.$Properties;
    }

    interface IBatchInput extends inference.BatchInput.$Properties {
    }

    class BatchInput {
        constructor(properties?: inference.BatchInput.$Properties);

        $unknowns?: Uint8Array[];

        kind: inference.BatchInput.Kind;

        targetName: string[];

        dataType: inference.DataType;

        sourceInput: string[];

        static encode(message: inference.BatchInput.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.BatchInput & inference.BatchInput.$Shape;

        static fromObject(object: { [k: string]: any }): inference.BatchInput;

        static toObject(message: inference.BatchInput, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace BatchInput {
        interface $Properties {
            kind?: (inference.BatchInput.Kind|null);

            targetName?: (string[]|null);

            dataType?: (inference.DataType|null);

            sourceInput?: (string[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.BatchInput.$Properties;

        enum Kind {
            BATCH_ELEMENT_COUNT = 0,

            BATCH_ACCUMULATED_ELEMENT_COUNT = 1,

            BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO = 2,

            BATCH_MAX_ELEMENT_COUNT_AS_SHAPE = 3,

            BATCH_ITEM_SHAPE = 4,

            BATCH_ITEM_SHAPE_FLATTEN = 5
        }
    }

    interface IBatchOutput extends inference.BatchOutput.$Properties {
    }

    class BatchOutput {
        constructor(properties?: inference.BatchOutput.$Properties);

        $unknowns?: Uint8Array[];

        targetName: string[];

        kind: inference.BatchOutput.Kind;

        sourceInput: string[];

        static encode(message: inference.BatchOutput.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.BatchOutput & inference.BatchOutput.$Shape;

        static fromObject(object: { [k: string]: any }): inference.BatchOutput;

        static toObject(message: inference.BatchOutput, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace BatchOutput {
        interface $Properties {
            targetName?: (string[]|null);

            kind?: (inference.BatchOutput.Kind|null);

            sourceInput?: (string[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.BatchOutput.$Properties;

        enum Kind {
            BATCH_SCATTER_WITH_INPUT_SHAPE = 0
        }
    }

    interface IModelVersionPolicy extends inference.ModelVersionPolicy.$Properties {
    }

    class ModelVersionPolicy {
        constructor(properties?: inference.ModelVersionPolicy.$Properties);

        $unknowns?: Uint8Array[];

        latest?: (inference.ModelVersionPolicy.Latest.$Properties|null);

        all?: (inference.ModelVersionPolicy.All.$Properties|null);

        specific?: (inference.ModelVersionPolicy.Specific.$Properties|null);

        policyChoice?: ("latest"|"all"|"specific");

        static encode(message: inference.ModelVersionPolicy.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelVersionPolicy & inference.ModelVersionPolicy.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelVersionPolicy;

        static toObject(message: inference.ModelVersionPolicy, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelVersionPolicy {
        interface $Properties {
            latest?: (inference.ModelVersionPolicy.Latest.$Properties|null);

            all?: (inference.ModelVersionPolicy.All.$Properties|null);

            specific?: (inference.ModelVersionPolicy.Specific.$Properties|null);

            policyChoice?: ("latest"|"all"|"specific");

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          latest?: inference.ModelVersionPolicy.Latest.$Shape|null;
          all?: inference.ModelVersionPolicy.All.$Shape|null;
          specific?: inference.ModelVersionPolicy.Specific.$Shape|null;
          $unknowns?: Uint8Array[];
        } & (
          ({ policyChoice?: undefined; latest?: null; all?: null; specific?: null }|{ policyChoice?: "latest"; latest: inference.ModelVersionPolicy.Latest.$Shape; all?: null; specific?: null }|{ policyChoice?: "all"; latest?: null; all: inference.ModelVersionPolicy.All.$Shape; specific?: null }|{ policyChoice?: "specific"; latest?: null; all?: null; specific: inference.ModelVersionPolicy.Specific.$Shape })
        );

        interface ILatest extends inference.ModelVersionPolicy.Latest.$Properties {
        }

        class Latest {
            constructor(properties?: inference.ModelVersionPolicy.Latest.$Properties);

            $unknowns?: Uint8Array[];

            numVersions: number;

            static encode(message: inference.ModelVersionPolicy.Latest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelVersionPolicy.Latest & inference.ModelVersionPolicy.Latest.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelVersionPolicy.Latest;

            static toObject(message: inference.ModelVersionPolicy.Latest, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Latest {
            interface $Properties {
                numVersions?: (number|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelVersionPolicy.Latest.$Properties;
        }

        interface IAll extends inference.ModelVersionPolicy.All.$Properties {
        }

        class All {
            constructor(properties?: inference.ModelVersionPolicy.All.$Properties);

            $unknowns?: Uint8Array[];

            static encode(message: inference.ModelVersionPolicy.All.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelVersionPolicy.All & inference.ModelVersionPolicy.All.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelVersionPolicy.All;

            static toObject(message: inference.ModelVersionPolicy.All, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace All {
            interface $Properties {
                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelVersionPolicy.All.$Properties;
        }

        interface ISpecific extends inference.ModelVersionPolicy.Specific.$Properties {
        }

        class Specific {
            constructor(properties?: inference.ModelVersionPolicy.Specific.$Properties);

            $unknowns?: Uint8Array[];

            versions: (number|bigint)[];

            static encode(message: inference.ModelVersionPolicy.Specific.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelVersionPolicy.Specific & inference.ModelVersionPolicy.Specific.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelVersionPolicy.Specific;

            static toObject(message: inference.ModelVersionPolicy.Specific, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Specific {
            interface $Properties {
                versions?: ((number|bigint)[]|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelVersionPolicy.Specific.$Properties;
        }
    }

    interface IModelOptimizationPolicy extends inference.ModelOptimizationPolicy.$Properties {
    }

    class ModelOptimizationPolicy {
        constructor(properties?: inference.ModelOptimizationPolicy.$Properties);

        $unknowns?: Uint8Array[];

        graph?: (inference.ModelOptimizationPolicy.Graph.$Properties|null);

        priority: inference.ModelOptimizationPolicy.ModelPriority;

        cuda?: (inference.ModelOptimizationPolicy.Cuda.$Properties|null);

        executionAccelerators?: (inference.ModelOptimizationPolicy.ExecutionAccelerators.$Properties|null);

        inputPinnedMemory?: (inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties|null);

        outputPinnedMemory?: (inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties|null);

        gatherKernelBufferThreshold: number;

        eagerBatching: boolean;

        static encode(message: inference.ModelOptimizationPolicy.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy & inference.ModelOptimizationPolicy.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy;

        static toObject(message: inference.ModelOptimizationPolicy, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelOptimizationPolicy {
        interface $Properties {
            graph?: (inference.ModelOptimizationPolicy.Graph.$Properties|null);

            priority?: (inference.ModelOptimizationPolicy.ModelPriority|null);

            cuda?: (inference.ModelOptimizationPolicy.Cuda.$Properties|null);

            executionAccelerators?: (inference.ModelOptimizationPolicy.ExecutionAccelerators.$Properties|null);

            inputPinnedMemory?: (inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties|null);

            outputPinnedMemory?: (inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties|null);

            gatherKernelBufferThreshold?: (number|null);

            eagerBatching?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelOptimizationPolicy.$Properties;

        enum ModelPriority {
            PRIORITY_DEFAULT = 0,

            PRIORITY_MAX = 1,

            PRIORITY_MIN = 2
        }

        interface IGraph extends inference.ModelOptimizationPolicy.Graph.$Properties {
        }

        class Graph {
            constructor(properties?: inference.ModelOptimizationPolicy.Graph.$Properties);

            $unknowns?: Uint8Array[];

            level: number;

            static encode(message: inference.ModelOptimizationPolicy.Graph.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.Graph & inference.ModelOptimizationPolicy.Graph.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.Graph;

            static toObject(message: inference.ModelOptimizationPolicy.Graph, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Graph {
            interface $Properties {
                level?: (number|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelOptimizationPolicy.Graph.$Properties;
        }

        interface ICuda extends inference.ModelOptimizationPolicy.Cuda.$Properties {
        }

        class Cuda {
            constructor(properties?: inference.ModelOptimizationPolicy.Cuda.$Properties);

            $unknowns?: Uint8Array[];

            graphs: boolean;

            busyWaitEvents: boolean;

            graphSpec: inference.ModelOptimizationPolicy.Cuda.GraphSpec.$Properties[];

            outputCopyStream: boolean;

            static encode(message: inference.ModelOptimizationPolicy.Cuda.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.Cuda & inference.ModelOptimizationPolicy.Cuda.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.Cuda;

            static toObject(message: inference.ModelOptimizationPolicy.Cuda, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Cuda {
            interface $Properties {
                graphs?: (boolean|null);

                busyWaitEvents?: (boolean|null);

                graphSpec?: (inference.ModelOptimizationPolicy.Cuda.GraphSpec.$Properties[]|null);

                outputCopyStream?: (boolean|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelOptimizationPolicy.Cuda.$Properties;

            interface IGraphSpec extends inference.ModelOptimizationPolicy.Cuda.GraphSpec.$Properties {
            }

            class GraphSpec {
                constructor(properties?: inference.ModelOptimizationPolicy.Cuda.GraphSpec.$Properties);

                $unknowns?: Uint8Array[];

                batchSize: number;

                input: { [k: string]: inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties };

                graphLowerBound?: (inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.$Properties|null);

                static encode(message: inference.ModelOptimizationPolicy.Cuda.GraphSpec.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.Cuda.GraphSpec & inference.ModelOptimizationPolicy.Cuda.GraphSpec.$Shape;

                static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.Cuda.GraphSpec;

                static toObject(message: inference.ModelOptimizationPolicy.Cuda.GraphSpec, options?: $protobuf.IConversionOptions): { [k: string]: any };
            }

            namespace GraphSpec {
                interface $Properties {
                    batchSize?: (number|null);

                    input?: ({ [k: string]: inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties }|null);

                    graphLowerBound?: (inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.$Properties|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = inference.ModelOptimizationPolicy.Cuda.GraphSpec.$Properties;

                interface IShape extends inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties {
                }

                class Shape {
                    constructor(properties?: inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties);

                    $unknowns?: Uint8Array[];

                    dim: (number|bigint)[];

                    static encode(message: inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape & inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Shape;

                    static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape;

                    static toObject(message: inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape, options?: $protobuf.IConversionOptions): { [k: string]: any };
                }

                namespace Shape {
                    interface $Properties {
                        dim?: ((number|bigint)[]|null);

                        $unknowns?: Uint8Array[];
                    }

                    type $Shape = inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties;
                }

                interface ILowerBound extends inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.$Properties {
                }

                class LowerBound {
                    constructor(properties?: inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.$Properties);

                    $unknowns?: Uint8Array[];

                    batchSize: number;

                    input: { [k: string]: inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties };

                    static encode(message: inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound & inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.$Shape;

                    static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound;

                    static toObject(message: inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound, options?: $protobuf.IConversionOptions): { [k: string]: any };
                }

                namespace LowerBound {
                    interface $Properties {
                        batchSize?: (number|null);

                        input?: ({ [k: string]: inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.$Properties }|null);

                        $unknowns?: Uint8Array[];
                    }

                    type $Shape = inference.ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound.$Properties;
                }
            }
        }

        interface IExecutionAccelerators extends inference.ModelOptimizationPolicy.ExecutionAccelerators.$Properties {
        }

        class ExecutionAccelerators {
            constructor(properties?: inference.ModelOptimizationPolicy.ExecutionAccelerators.$Properties);

            $unknowns?: Uint8Array[];

            gpuExecutionAccelerator: inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties[];

            cpuExecutionAccelerator: inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties[];

            static encode(message: inference.ModelOptimizationPolicy.ExecutionAccelerators.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.ExecutionAccelerators & inference.ModelOptimizationPolicy.ExecutionAccelerators.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.ExecutionAccelerators;

            static toObject(message: inference.ModelOptimizationPolicy.ExecutionAccelerators, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace ExecutionAccelerators {
            interface $Properties {
                gpuExecutionAccelerator?: (inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties[]|null);

                cpuExecutionAccelerator?: (inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties[]|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelOptimizationPolicy.ExecutionAccelerators.$Properties;

            interface IAccelerator extends inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties {
            }

            class Accelerator {
                constructor(properties?: inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties);

                $unknowns?: Uint8Array[];

                name: string;

                parameters: { [k: string]: string };

                static encode(message: inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator & inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Shape;

                static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator;

                static toObject(message: inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator, options?: $protobuf.IConversionOptions): { [k: string]: any };
            }

            namespace Accelerator {
                interface $Properties {
                    name?: (string|null);

                    parameters?: ({ [k: string]: string }|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = inference.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator.$Properties;
            }
        }

        interface IPinnedMemoryBuffer extends inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties {
        }

        class PinnedMemoryBuffer {
            constructor(properties?: inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties);

            $unknowns?: Uint8Array[];

            enable: boolean;

            static encode(message: inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOptimizationPolicy.PinnedMemoryBuffer & inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelOptimizationPolicy.PinnedMemoryBuffer;

            static toObject(message: inference.ModelOptimizationPolicy.PinnedMemoryBuffer, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace PinnedMemoryBuffer {
            interface $Properties {
                enable?: (boolean|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelOptimizationPolicy.PinnedMemoryBuffer.$Properties;
        }
    }

    interface IModelQueuePolicy extends inference.ModelQueuePolicy.$Properties {
    }

    class ModelQueuePolicy {
        constructor(properties?: inference.ModelQueuePolicy.$Properties);

        $unknowns?: Uint8Array[];

        timeoutAction: inference.ModelQueuePolicy.TimeoutAction;

        defaultTimeoutMicroseconds: (number|bigint);

        allowTimeoutOverride: boolean;

        maxQueueSize: number;

        static encode(message: inference.ModelQueuePolicy.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelQueuePolicy & inference.ModelQueuePolicy.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelQueuePolicy;

        static toObject(message: inference.ModelQueuePolicy, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelQueuePolicy {
        interface $Properties {
            timeoutAction?: (inference.ModelQueuePolicy.TimeoutAction|null);

            defaultTimeoutMicroseconds?: (number|bigint|null);

            allowTimeoutOverride?: (boolean|null);

            maxQueueSize?: (number|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelQueuePolicy.$Properties;

        enum TimeoutAction {
            REJECT = 0,

            DELAY = 1
        }
    }

    interface IModelDynamicBatching extends inference.ModelDynamicBatching.$Properties {
    }

    class ModelDynamicBatching {
        constructor(properties?: inference.ModelDynamicBatching.$Properties);

        $unknowns?: Uint8Array[];

        preferredBatchSize: number[];

        maxQueueDelayMicroseconds: (number|bigint);

        preserveOrdering: boolean;

        priorityLevels: (number|bigint);

        defaultPriorityLevel: (number|bigint);

        defaultQueuePolicy?: (inference.ModelQueuePolicy.$Properties|null);

        priorityQueuePolicy: { [k: string]: inference.ModelQueuePolicy.$Properties };

        static encode(message: inference.ModelDynamicBatching.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelDynamicBatching & inference.ModelDynamicBatching.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelDynamicBatching;

        static toObject(message: inference.ModelDynamicBatching, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelDynamicBatching {
        interface $Properties {
            preferredBatchSize?: (number[]|null);

            maxQueueDelayMicroseconds?: (number|bigint|null);

            preserveOrdering?: (boolean|null);

            priorityLevels?: (number|bigint|null);

            defaultPriorityLevel?: (number|bigint|null);

            defaultQueuePolicy?: (inference.ModelQueuePolicy.$Properties|null);

            priorityQueuePolicy?: ({ [k: string]: inference.ModelQueuePolicy.$Properties }|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelDynamicBatching.$Properties;
    }

    interface IModelSequenceBatching extends inference.ModelSequenceBatching.$Properties {
    }

    class ModelSequenceBatching {
        constructor(properties?: inference.ModelSequenceBatching.$Properties);

        $unknowns?: Uint8Array[];

        direct?: (inference.ModelSequenceBatching.StrategyDirect.$Properties|null);

        oldest?: (inference.ModelSequenceBatching.StrategyOldest.$Properties|null);

        maxSequenceIdleMicroseconds: (number|bigint);

        controlInput: inference.ModelSequenceBatching.ControlInput.$Properties[];

        state: inference.ModelSequenceBatching.State.$Properties[];

        iterativeSequence: boolean;

        strategyChoice?: ("direct"|"oldest");

        static encode(message: inference.ModelSequenceBatching.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelSequenceBatching & inference.ModelSequenceBatching.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelSequenceBatching;

        static toObject(message: inference.ModelSequenceBatching, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelSequenceBatching {
        interface $Properties {
            direct?: (inference.ModelSequenceBatching.StrategyDirect.$Properties|null);

            oldest?: (inference.ModelSequenceBatching.StrategyOldest.$Properties|null);

            maxSequenceIdleMicroseconds?: (number|bigint|null);

            controlInput?: (inference.ModelSequenceBatching.ControlInput.$Properties[]|null);

            state?: (inference.ModelSequenceBatching.State.$Properties[]|null);

            iterativeSequence?: (boolean|null);

            strategyChoice?: ("direct"|"oldest");

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          direct?: inference.ModelSequenceBatching.StrategyDirect.$Shape|null;
          oldest?: inference.ModelSequenceBatching.StrategyOldest.$Shape|null;
          maxSequenceIdleMicroseconds?: number|bigint|null;
          controlInput?: inference.ModelSequenceBatching.ControlInput.$Shape[]|null;
          state?: inference.ModelSequenceBatching.State.$Shape[]|null;
          iterativeSequence?: boolean|null;
          $unknowns?: Uint8Array[];
        } & (
          ({ strategyChoice?: undefined; direct?: null; oldest?: null }|{ strategyChoice?: "direct"; direct: inference.ModelSequenceBatching.StrategyDirect.$Shape; oldest?: null }|{ strategyChoice?: "oldest"; direct?: null; oldest: inference.ModelSequenceBatching.StrategyOldest.$Shape })
        );

        interface IControl extends inference.ModelSequenceBatching.Control.$Properties {
        }

        class Control {
            constructor(properties?: inference.ModelSequenceBatching.Control.$Properties);

            $unknowns?: Uint8Array[];

            kind: inference.ModelSequenceBatching.Control.Kind;

            int32FalseTrue: number[];

            fp32FalseTrue: number[];

            boolFalseTrue: boolean[];

            dataType: inference.DataType;

            static encode(message: inference.ModelSequenceBatching.Control.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelSequenceBatching.Control & inference.ModelSequenceBatching.Control.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelSequenceBatching.Control;

            static toObject(message: inference.ModelSequenceBatching.Control, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Control {
            interface $Properties {
                kind?: (inference.ModelSequenceBatching.Control.Kind|null);

                int32FalseTrue?: (number[]|null);

                fp32FalseTrue?: (number[]|null);

                boolFalseTrue?: (boolean[]|null);

                dataType?: (inference.DataType|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelSequenceBatching.Control.$Properties;

            enum Kind {
                CONTROL_SEQUENCE_START = 0,

                CONTROL_SEQUENCE_READY = 1,

                CONTROL_SEQUENCE_END = 2,

                CONTROL_SEQUENCE_CORRID = 3
            }
        }

        interface IControlInput extends inference.ModelSequenceBatching.ControlInput.$Properties {
        }

        class ControlInput {
            constructor(properties?: inference.ModelSequenceBatching.ControlInput.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            control: inference.ModelSequenceBatching.Control.$Properties[];

            static encode(message: inference.ModelSequenceBatching.ControlInput.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelSequenceBatching.ControlInput & inference.ModelSequenceBatching.ControlInput.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelSequenceBatching.ControlInput;

            static toObject(message: inference.ModelSequenceBatching.ControlInput, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace ControlInput {
            interface $Properties {
                name?: (string|null);

                control?: (inference.ModelSequenceBatching.Control.$Properties[]|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelSequenceBatching.ControlInput.$Properties;
        }

        interface IInitialState extends inference.ModelSequenceBatching.InitialState.$Properties {
        }

        class InitialState {
            constructor(properties?: inference.ModelSequenceBatching.InitialState.$Properties);

            $unknowns?: Uint8Array[];

            dataType: inference.DataType;

            dims: (number|bigint)[];

            zeroData?: (boolean|null);

            dataFile?: (string|null);

            name: string;

            stateData?: ("zeroData"|"dataFile");

            static encode(message: inference.ModelSequenceBatching.InitialState.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelSequenceBatching.InitialState & inference.ModelSequenceBatching.InitialState.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelSequenceBatching.InitialState;

            static toObject(message: inference.ModelSequenceBatching.InitialState, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace InitialState {
            interface $Properties {
                dataType?: (inference.DataType|null);

                dims?: ((number|bigint)[]|null);

                zeroData?: (boolean|null);

                dataFile?: (string|null);

                name?: (string|null);

                stateData?: ("zeroData"|"dataFile");

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              dataType?: inference.DataType|null;
              dims?: (number|bigint)[]|null;
              zeroData?: boolean|null;
              dataFile?: string|null;
              name?: string|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ stateData?: undefined; zeroData?: null; dataFile?: null }|{ stateData?: "zeroData"; zeroData: boolean; dataFile?: null }|{ stateData?: "dataFile"; zeroData?: null; dataFile: string })
            );
        }

        interface IState extends inference.ModelSequenceBatching.State.$Properties {
        }

        class State {
            constructor(properties?: inference.ModelSequenceBatching.State.$Properties);

            $unknowns?: Uint8Array[];

            inputName: string;

            outputName: string;

            dataType: inference.DataType;

            dims: (number|bigint)[];

            initialState: inference.ModelSequenceBatching.InitialState.$Properties[];

            useSameBufferForInputOutput: boolean;

            useGrowableMemory: boolean;

            static encode(message: inference.ModelSequenceBatching.State.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelSequenceBatching.State & inference.ModelSequenceBatching.State.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelSequenceBatching.State;

            static toObject(message: inference.ModelSequenceBatching.State, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace State {
            interface $Properties {
                inputName?: (string|null);

                outputName?: (string|null);

                dataType?: (inference.DataType|null);

                dims?: ((number|bigint)[]|null);

                initialState?: (inference.ModelSequenceBatching.InitialState.$Properties[]|null);

                useSameBufferForInputOutput?: (boolean|null);

                useGrowableMemory?: (boolean|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              inputName?: string|null;
              outputName?: string|null;
              dataType?: inference.DataType|null;
              dims?: (number|bigint)[]|null;
              initialState?: inference.ModelSequenceBatching.InitialState.$Shape[]|null;
              useSameBufferForInputOutput?: boolean|null;
              useGrowableMemory?: boolean|null;
              $unknowns?: Uint8Array[];
            };
        }

        interface IStrategyDirect extends inference.ModelSequenceBatching.StrategyDirect.$Properties {
        }

        class StrategyDirect {
            constructor(properties?: inference.ModelSequenceBatching.StrategyDirect.$Properties);

            $unknowns?: Uint8Array[];

            maxQueueDelayMicroseconds: (number|bigint);

            minimumSlotUtilization: number;

            static encode(message: inference.ModelSequenceBatching.StrategyDirect.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelSequenceBatching.StrategyDirect & inference.ModelSequenceBatching.StrategyDirect.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelSequenceBatching.StrategyDirect;

            static toObject(message: inference.ModelSequenceBatching.StrategyDirect, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace StrategyDirect {
            interface $Properties {
                maxQueueDelayMicroseconds?: (number|bigint|null);

                minimumSlotUtilization?: (number|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelSequenceBatching.StrategyDirect.$Properties;
        }

        interface IStrategyOldest extends inference.ModelSequenceBatching.StrategyOldest.$Properties {
        }

        class StrategyOldest {
            constructor(properties?: inference.ModelSequenceBatching.StrategyOldest.$Properties);

            $unknowns?: Uint8Array[];

            maxCandidateSequences: number;

            preferredBatchSize: number[];

            maxQueueDelayMicroseconds: (number|bigint);

            preserveOrdering: boolean;

            static encode(message: inference.ModelSequenceBatching.StrategyOldest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelSequenceBatching.StrategyOldest & inference.ModelSequenceBatching.StrategyOldest.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelSequenceBatching.StrategyOldest;

            static toObject(message: inference.ModelSequenceBatching.StrategyOldest, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace StrategyOldest {
            interface $Properties {
                maxCandidateSequences?: (number|null);

                preferredBatchSize?: (number[]|null);

                maxQueueDelayMicroseconds?: (number|bigint|null);

                preserveOrdering?: (boolean|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelSequenceBatching.StrategyOldest.$Properties;
        }
    }

    interface IModelEnsembling extends inference.ModelEnsembling.$Properties {
    }

    class ModelEnsembling {
        constructor(properties?: inference.ModelEnsembling.$Properties);

        $unknowns?: Uint8Array[];

        step: inference.ModelEnsembling.Step.$Properties[];

        maxInflightRequests: number;

        static encode(message: inference.ModelEnsembling.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelEnsembling & inference.ModelEnsembling.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelEnsembling;

        static toObject(message: inference.ModelEnsembling, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelEnsembling {
        interface $Properties {
            step?: (inference.ModelEnsembling.Step.$Properties[]|null);

            maxInflightRequests?: (number|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelEnsembling.$Properties;

        interface IStep extends inference.ModelEnsembling.Step.$Properties {
        }

        class Step {
            constructor(properties?: inference.ModelEnsembling.Step.$Properties);

            $unknowns?: Uint8Array[];

            modelName: string;

            modelVersion: (number|bigint);

            inputMap: { [k: string]: string };

            outputMap: { [k: string]: string };

            modelNamespace: string;

            static encode(message: inference.ModelEnsembling.Step.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelEnsembling.Step & inference.ModelEnsembling.Step.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelEnsembling.Step;

            static toObject(message: inference.ModelEnsembling.Step, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Step {
            interface $Properties {
                modelName?: (string|null);

                modelVersion?: (number|bigint|null);

                inputMap?: ({ [k: string]: string }|null);

                outputMap?: ({ [k: string]: string }|null);

                modelNamespace?: (string|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelEnsembling.Step.$Properties;
        }
    }

    interface IModelParameter extends inference.ModelParameter.$Properties {
    }

    class ModelParameter {
        constructor(properties?: inference.ModelParameter.$Properties);

        $unknowns?: Uint8Array[];

        stringValue: string;

        static encode(message: inference.ModelParameter.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelParameter & inference.ModelParameter.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelParameter;

        static toObject(message: inference.ModelParameter, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelParameter {
        interface $Properties {
            stringValue?: (string|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelParameter.$Properties;
    }

    interface IModelWarmup extends inference.ModelWarmup.$Properties {
    }

    class ModelWarmup {
        constructor(properties?: inference.ModelWarmup.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        batchSize: number;

        inputs: { [k: string]: inference.ModelWarmup.Input.$Properties };

        count: number;

        static encode(message: inference.ModelWarmup.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelWarmup & inference.ModelWarmup.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelWarmup;

        static toObject(message: inference.ModelWarmup, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelWarmup {
        interface $Properties {
            name?: (string|null);

            batchSize?: (number|null);

            inputs?: ({ [k: string]: inference.ModelWarmup.Input.$Properties }|null);

            count?: (number|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          name?: string|null;
          batchSize?: number|null;
          inputs?: { [k: string]: inference.ModelWarmup.Input.$Shape }|null;
          count?: number|null;
          $unknowns?: Uint8Array[];
        };

        interface IInput extends inference.ModelWarmup.Input.$Properties {
        }

        class Input {
            constructor(properties?: inference.ModelWarmup.Input.$Properties);

            $unknowns?: Uint8Array[];

            dataType: inference.DataType;

            dims: (number|bigint)[];

            zeroData?: (boolean|null);

            randomData?: (boolean|null);

            inputDataFile?: (string|null);

            inputDataType?: ("zeroData"|"randomData"|"inputDataFile");

            static encode(message: inference.ModelWarmup.Input.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelWarmup.Input & inference.ModelWarmup.Input.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelWarmup.Input;

            static toObject(message: inference.ModelWarmup.Input, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Input {
            interface $Properties {
                dataType?: (inference.DataType|null);

                dims?: ((number|bigint)[]|null);

                zeroData?: (boolean|null);

                randomData?: (boolean|null);

                inputDataFile?: (string|null);

                inputDataType?: ("zeroData"|"randomData"|"inputDataFile");

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              dataType?: inference.DataType|null;
              dims?: (number|bigint)[]|null;
              zeroData?: boolean|null;
              randomData?: boolean|null;
              inputDataFile?: string|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ inputDataType?: undefined; zeroData?: null; randomData?: null; inputDataFile?: null }|{ inputDataType?: "zeroData"; zeroData: boolean; randomData?: null; inputDataFile?: null }|{ inputDataType?: "randomData"; zeroData?: null; randomData: boolean; inputDataFile?: null }|{ inputDataType?: "inputDataFile"; zeroData?: null; randomData?: null; inputDataFile: string })
            );
        }
    }

    interface IModelOperations extends inference.ModelOperations.$Properties {
    }

    class ModelOperations {
        constructor(properties?: inference.ModelOperations.$Properties);

        $unknowns?: Uint8Array[];

        opLibraryFilename: string[];

        static encode(message: inference.ModelOperations.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelOperations & inference.ModelOperations.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelOperations;

        static toObject(message: inference.ModelOperations, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelOperations {
        interface $Properties {
            opLibraryFilename?: (string[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelOperations.$Properties;
    }

    interface IModelTransactionPolicy extends inference.ModelTransactionPolicy.$Properties {
    }

    class ModelTransactionPolicy {
        constructor(properties?: inference.ModelTransactionPolicy.$Properties);

        $unknowns?: Uint8Array[];

        decoupled: boolean;

        static encode(message: inference.ModelTransactionPolicy.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelTransactionPolicy & inference.ModelTransactionPolicy.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelTransactionPolicy;

        static toObject(message: inference.ModelTransactionPolicy, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelTransactionPolicy {
        interface $Properties {
            decoupled?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelTransactionPolicy.$Properties;
    }

    interface IModelRepositoryAgents extends inference.ModelRepositoryAgents.$Properties {
    }

    class ModelRepositoryAgents {
        constructor(properties?: inference.ModelRepositoryAgents.$Properties);

        $unknowns?: Uint8Array[];

        agents: inference.ModelRepositoryAgents.Agent.$Properties[];

        static encode(message: inference.ModelRepositoryAgents.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelRepositoryAgents & inference.ModelRepositoryAgents.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelRepositoryAgents;

        static toObject(message: inference.ModelRepositoryAgents, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelRepositoryAgents {
        interface $Properties {
            agents?: (inference.ModelRepositoryAgents.Agent.$Properties[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelRepositoryAgents.$Properties;

        interface IAgent extends inference.ModelRepositoryAgents.Agent.$Properties {
        }

        class Agent {
            constructor(properties?: inference.ModelRepositoryAgents.Agent.$Properties);

            $unknowns?: Uint8Array[];

            name: string;

            parameters: { [k: string]: string };

            static encode(message: inference.ModelRepositoryAgents.Agent.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelRepositoryAgents.Agent & inference.ModelRepositoryAgents.Agent.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelRepositoryAgents.Agent;

            static toObject(message: inference.ModelRepositoryAgents.Agent, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace Agent {
            interface $Properties {
                name?: (string|null);

                parameters?: ({ [k: string]: string }|null);

                $unknowns?: Uint8Array[];
            }

            type $Shape = inference.ModelRepositoryAgents.Agent.$Properties;
        }
    }

    interface IModelResponseCache extends inference.ModelResponseCache.$Properties {
    }

    class ModelResponseCache {
        constructor(properties?: inference.ModelResponseCache.$Properties);

        $unknowns?: Uint8Array[];

        enable: boolean;

        static encode(message: inference.ModelResponseCache.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelResponseCache & inference.ModelResponseCache.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelResponseCache;

        static toObject(message: inference.ModelResponseCache, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelResponseCache {
        interface $Properties {
            enable?: (boolean|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = inference.ModelResponseCache.$Properties;
    }

    interface IModelMetrics extends inference.ModelMetrics.$Properties {
    }

    class ModelMetrics {
        constructor(properties?: inference.ModelMetrics.$Properties);

        $unknowns?: Uint8Array[];

        metricControl: inference.ModelMetrics.MetricControl.$Properties[];

        static encode(message: inference.ModelMetrics.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelMetrics & inference.ModelMetrics.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelMetrics;

        static toObject(message: inference.ModelMetrics, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelMetrics {
        interface $Properties {
            metricControl?: (inference.ModelMetrics.MetricControl.$Properties[]|null);

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          metricControl?: inference.ModelMetrics.MetricControl.$Shape[]|null;
          $unknowns?: Uint8Array[];
        };

        interface IMetricControl extends inference.ModelMetrics.MetricControl.$Properties {
        }

        class MetricControl {
            constructor(properties?: inference.ModelMetrics.MetricControl.$Properties);

            $unknowns?: Uint8Array[];

            metricIdentifier?: (inference.ModelMetrics.MetricControl.MetricIdentifier.$Properties|null);

            histogramOptions?: (inference.ModelMetrics.MetricControl.HistogramOptions.$Properties|null);

            metricOptions?: "histogramOptions";

            static encode(message: inference.ModelMetrics.MetricControl.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelMetrics.MetricControl & inference.ModelMetrics.MetricControl.$Shape;

            static fromObject(object: { [k: string]: any }): inference.ModelMetrics.MetricControl;

            static toObject(message: inference.ModelMetrics.MetricControl, options?: $protobuf.IConversionOptions): { [k: string]: any };
        }

        namespace MetricControl {
            interface $Properties {
                metricIdentifier?: (inference.ModelMetrics.MetricControl.MetricIdentifier.$Properties|null);

                histogramOptions?: (inference.ModelMetrics.MetricControl.HistogramOptions.$Properties|null);

                metricOptions?: "histogramOptions";

                $unknowns?: Uint8Array[];
            }

            type $Shape = {
              metricIdentifier?: inference.ModelMetrics.MetricControl.MetricIdentifier.$Shape|null;
              histogramOptions?: inference.ModelMetrics.MetricControl.HistogramOptions.$Shape|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ metricOptions?: undefined; histogramOptions?: null }|{ metricOptions?: "histogramOptions"; histogramOptions: inference.ModelMetrics.MetricControl.HistogramOptions.$Shape })
            );

            interface IMetricIdentifier extends inference.ModelMetrics.MetricControl.MetricIdentifier.$Properties {
            }

            class MetricIdentifier {
                constructor(properties?: inference.ModelMetrics.MetricControl.MetricIdentifier.$Properties);

                $unknowns?: Uint8Array[];

                family: string;

                static encode(message: inference.ModelMetrics.MetricControl.MetricIdentifier.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelMetrics.MetricControl.MetricIdentifier & inference.ModelMetrics.MetricControl.MetricIdentifier.$Shape;

                static fromObject(object: { [k: string]: any }): inference.ModelMetrics.MetricControl.MetricIdentifier;

                static toObject(message: inference.ModelMetrics.MetricControl.MetricIdentifier, options?: $protobuf.IConversionOptions): { [k: string]: any };
            }

            namespace MetricIdentifier {
                interface $Properties {
                    family?: (string|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = inference.ModelMetrics.MetricControl.MetricIdentifier.$Properties;
            }

            interface IHistogramOptions extends inference.ModelMetrics.MetricControl.HistogramOptions.$Properties {
            }

            class HistogramOptions {
                constructor(properties?: inference.ModelMetrics.MetricControl.HistogramOptions.$Properties);

                $unknowns?: Uint8Array[];

                buckets: number[];

                static encode(message: inference.ModelMetrics.MetricControl.HistogramOptions.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelMetrics.MetricControl.HistogramOptions & inference.ModelMetrics.MetricControl.HistogramOptions.$Shape;

                static fromObject(object: { [k: string]: any }): inference.ModelMetrics.MetricControl.HistogramOptions;

                static toObject(message: inference.ModelMetrics.MetricControl.HistogramOptions, options?: $protobuf.IConversionOptions): { [k: string]: any };
            }

            namespace HistogramOptions {
                interface $Properties {
                    buckets?: (number[]|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = inference.ModelMetrics.MetricControl.HistogramOptions.$Properties;
            }
        }
    }

    interface IModelConfig extends inference.ModelConfig.$Properties {
    }

    class ModelConfig {
        constructor(properties?: inference.ModelConfig.$Properties);

        $unknowns?: Uint8Array[];

        name: string;

        platform: string;

        backend: string;

        runtime: string;

        versionPolicy?: (inference.ModelVersionPolicy.$Properties|null);

        maxBatchSize: number;

        input: inference.ModelInput.$Properties[];

        output: inference.ModelOutput.$Properties[];

        batchInput: inference.BatchInput.$Properties[];

        batchOutput: inference.BatchOutput.$Properties[];

        optimization?: (inference.ModelOptimizationPolicy.$Properties|null);

        dynamicBatching?: (inference.ModelDynamicBatching.$Properties|null);

        sequenceBatching?: (inference.ModelSequenceBatching.$Properties|null);

        ensembleScheduling?: (inference.ModelEnsembling.$Properties|null);

        instanceGroup: inference.ModelInstanceGroup.$Properties[];

        defaultModelFilename: string;

        ccModelFilenames: { [k: string]: string };

        metricTags: { [k: string]: string };

        parameters: { [k: string]: inference.ModelParameter.$Properties };

        modelWarmup: inference.ModelWarmup.$Properties[];

        modelOperations?: (inference.ModelOperations.$Properties|null);

        modelTransactionPolicy?: (inference.ModelTransactionPolicy.$Properties|null);

        modelRepositoryAgents?: (inference.ModelRepositoryAgents.$Properties|null);

        responseCache?: (inference.ModelResponseCache.$Properties|null);

        modelMetrics?: (inference.ModelMetrics.$Properties|null);

        schedulingChoice?: ("dynamicBatching"|"sequenceBatching"|"ensembleScheduling");

        static encode(message: inference.ModelConfig.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

        static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): inference.ModelConfig & inference.ModelConfig.$Shape;

        static fromObject(object: { [k: string]: any }): inference.ModelConfig;

        static toObject(message: inference.ModelConfig, options?: $protobuf.IConversionOptions): { [k: string]: any };
    }

    namespace ModelConfig {
        interface $Properties {
            name?: (string|null);

            platform?: (string|null);

            backend?: (string|null);

            runtime?: (string|null);

            versionPolicy?: (inference.ModelVersionPolicy.$Properties|null);

            maxBatchSize?: (number|null);

            input?: (inference.ModelInput.$Properties[]|null);

            output?: (inference.ModelOutput.$Properties[]|null);

            batchInput?: (inference.BatchInput.$Properties[]|null);

            batchOutput?: (inference.BatchOutput.$Properties[]|null);

            optimization?: (inference.ModelOptimizationPolicy.$Properties|null);

            dynamicBatching?: (inference.ModelDynamicBatching.$Properties|null);

            sequenceBatching?: (inference.ModelSequenceBatching.$Properties|null);

            ensembleScheduling?: (inference.ModelEnsembling.$Properties|null);

            instanceGroup?: (inference.ModelInstanceGroup.$Properties[]|null);

            defaultModelFilename?: (string|null);

            ccModelFilenames?: ({ [k: string]: string }|null);

            metricTags?: ({ [k: string]: string }|null);

            parameters?: ({ [k: string]: inference.ModelParameter.$Properties }|null);

            modelWarmup?: (inference.ModelWarmup.$Properties[]|null);

            modelOperations?: (inference.ModelOperations.$Properties|null);

            modelTransactionPolicy?: (inference.ModelTransactionPolicy.$Properties|null);

            modelRepositoryAgents?: (inference.ModelRepositoryAgents.$Properties|null);

            responseCache?: (inference.ModelResponseCache.$Properties|null);

            modelMetrics?: (inference.ModelMetrics.$Properties|null);

            schedulingChoice?: ("dynamicBatching"|"sequenceBatching"|"ensembleScheduling");

            $unknowns?: Uint8Array[];
        }

        type $Shape = {
          name?: string|null;
          platform?: string|null;
          backend?: string|null;
          runtime?: string|null;
          versionPolicy?: inference.ModelVersionPolicy.$Shape|null;
          maxBatchSize?: number|null;
          input?: inference.ModelInput.$Shape[]|null;
          output?: inference.ModelOutput.$Shape[]|null;
          batchInput?: inference.BatchInput.$Shape[]|null;
          batchOutput?: inference.BatchOutput.$Shape[]|null;
          optimization?: inference.ModelOptimizationPolicy.$Shape|null;
          dynamicBatching?: inference.ModelDynamicBatching.$Shape|null;
          sequenceBatching?: inference.ModelSequenceBatching.$Shape|null;
          ensembleScheduling?: inference.ModelEnsembling.$Shape|null;
          instanceGroup?: inference.ModelInstanceGroup.$Shape[]|null;
          defaultModelFilename?: string|null;
          ccModelFilenames?: { [k: string]: string }|null;
          metricTags?: { [k: string]: string }|null;
          parameters?: { [k: string]: inference.ModelParameter.$Shape }|null;
          modelWarmup?: inference.ModelWarmup.$Shape[]|null;
          modelOperations?: inference.ModelOperations.$Shape|null;
          modelTransactionPolicy?: inference.ModelTransactionPolicy.$Shape|null;
          modelRepositoryAgents?: inference.ModelRepositoryAgents.$Shape|null;
          responseCache?: inference.ModelResponseCache.$Shape|null;
          modelMetrics?: inference.ModelMetrics.$Shape|null;
          $unknowns?: Uint8Array[];
        } & (
          ({ schedulingChoice?: undefined; dynamicBatching?: null; sequenceBatching?: null; ensembleScheduling?: null }|{ schedulingChoice?: "dynamicBatching"; dynamicBatching: inference.ModelDynamicBatching.$Shape; sequenceBatching?: null; ensembleScheduling?: null }|{ schedulingChoice?: "sequenceBatching"; dynamicBatching?: null; sequenceBatching: inference.ModelSequenceBatching.$Shape; ensembleScheduling?: null }|{ schedulingChoice?: "ensembleScheduling"; dynamicBatching?: null; sequenceBatching?: null; ensembleScheduling: inference.ModelEnsembling.$Shape })
        );
    }
}

export namespace grpc {
    namespace health {
        namespace v1 {
            interface IHealthCheckRequest extends grpc.health.v1.HealthCheckRequest.$Properties {
            }

            class HealthCheckRequest {
                constructor(properties?: grpc.health.v1.HealthCheckRequest.$Properties);

                $unknowns?: Uint8Array[];

                service: string;

                static encode(message: grpc.health.v1.HealthCheckRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.health.v1.HealthCheckRequest & grpc.health.v1.HealthCheckRequest.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.health.v1.HealthCheckRequest;
            }

            namespace HealthCheckRequest {
                interface $Properties {
                    service?: (string|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.health.v1.HealthCheckRequest.$Properties;
            }

            interface IHealthCheckResponse extends grpc.health.v1.HealthCheckResponse.$Properties {
            }

            class HealthCheckResponse {
                constructor(properties?: grpc.health.v1.HealthCheckResponse.$Properties);

                $unknowns?: Uint8Array[];

                status: grpc.health.v1.HealthCheckResponse.ServingStatus;

                static encode(message: grpc.health.v1.HealthCheckResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.health.v1.HealthCheckResponse & grpc.health.v1.HealthCheckResponse.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.health.v1.HealthCheckResponse;
            }

            namespace HealthCheckResponse {
                interface $Properties {
                    status?: (grpc.health.v1.HealthCheckResponse.ServingStatus|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.health.v1.HealthCheckResponse.$Properties;

                enum ServingStatus {
                    UNKNOWN = 0,

                    SERVING = 1,

                    NOT_SERVING = 2,

                    SERVICE_UNKNOWN = 3
                }
            }
        }
    }

    namespace reflection {
        namespace v1 {
            interface IServerReflectionRequest extends grpc.reflection.v1.ServerReflectionRequest.$Properties {
            }

            class ServerReflectionRequest {
                constructor(properties?: grpc.reflection.v1.ServerReflectionRequest.$Properties);

                $unknowns?: Uint8Array[];

                host: string;

                fileByFilename?: (string|null);

                fileContainingSymbol?: (string|null);

                fileContainingExtension?: (grpc.reflection.v1.ExtensionRequest.$Properties|null);

                allExtensionNumbersOfType?: (string|null);

                listServices?: (string|null);

                messageRequest?: ("fileByFilename"|"fileContainingSymbol"|"fileContainingExtension"|"allExtensionNumbersOfType"|"listServices");

                static encode(message: grpc.reflection.v1.ServerReflectionRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.ServerReflectionRequest & grpc.reflection.v1.ServerReflectionRequest.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.ServerReflectionRequest;
            }

            namespace ServerReflectionRequest {
                interface $Properties {
                    host?: (string|null);

                    fileByFilename?: (string|null);

                    fileContainingSymbol?: (string|null);

                    fileContainingExtension?: (grpc.reflection.v1.ExtensionRequest.$Properties|null);

                    allExtensionNumbersOfType?: (string|null);

                    listServices?: (string|null);

                    messageRequest?: ("fileByFilename"|"fileContainingSymbol"|"fileContainingExtension"|"allExtensionNumbersOfType"|"listServices");

                    $unknowns?: Uint8Array[];
                }

                type $Shape = {
                  host?: string|null;
                  fileByFilename?: string|null;
                  fileContainingSymbol?: string|null;
                  fileContainingExtension?: grpc.reflection.v1.ExtensionRequest.$Shape|null;
                  allExtensionNumbersOfType?: string|null;
                  listServices?: string|null;
                  $unknowns?: Uint8Array[];
                } & (
                  ({ messageRequest?: undefined; fileByFilename?: null; fileContainingSymbol?: null; fileContainingExtension?: null; allExtensionNumbersOfType?: null; listServices?: null }|{ messageRequest?: "fileByFilename"; fileByFilename: string; fileContainingSymbol?: null; fileContainingExtension?: null; allExtensionNumbersOfType?: null; listServices?: null }|{ messageRequest?: "fileContainingSymbol"; fileByFilename?: null; fileContainingSymbol: string; fileContainingExtension?: null; allExtensionNumbersOfType?: null; listServices?: null }|{ messageRequest?: "fileContainingExtension"; fileByFilename?: null; fileContainingSymbol?: null; fileContainingExtension: grpc.reflection.v1.ExtensionRequest.$Shape; allExtensionNumbersOfType?: null; listServices?: null }|{ messageRequest?: "allExtensionNumbersOfType"; fileByFilename?: null; fileContainingSymbol?: null; fileContainingExtension?: null; allExtensionNumbersOfType: string; listServices?: null }|{ messageRequest?: "listServices"; fileByFilename?: null; fileContainingSymbol?: null; fileContainingExtension?: null; allExtensionNumbersOfType?: null; listServices: string })
                );
            }

            interface IExtensionRequest extends grpc.reflection.v1.ExtensionRequest.$Properties {
            }

            class ExtensionRequest {
                constructor(properties?: grpc.reflection.v1.ExtensionRequest.$Properties);

                $unknowns?: Uint8Array[];

                containingType: string;

                extensionNumber: number;

                static encode(message: grpc.reflection.v1.ExtensionRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.ExtensionRequest & grpc.reflection.v1.ExtensionRequest.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.ExtensionRequest;
            }

            namespace ExtensionRequest {
                interface $Properties {
                    containingType?: (string|null);

                    extensionNumber?: (number|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.reflection.v1.ExtensionRequest.$Properties;
            }

            interface IServerReflectionResponse extends grpc.reflection.v1.ServerReflectionResponse.$Properties {
            }

            class ServerReflectionResponse {
                constructor(properties?: grpc.reflection.v1.ServerReflectionResponse.$Properties);

                $unknowns?: Uint8Array[];

                validHost: string;

                originalRequest?: (grpc.reflection.v1.ServerReflectionRequest.$Properties|null);

                fileDescriptorResponse?: (grpc.reflection.v1.FileDescriptorResponse.$Properties|null);

                allExtensionNumbersResponse?: (grpc.reflection.v1.ExtensionNumberResponse.$Properties|null);

                listServicesResponse?: (grpc.reflection.v1.ListServiceResponse.$Properties|null);

                errorResponse?: (grpc.reflection.v1.ErrorResponse.$Properties|null);

                messageResponse?: ("fileDescriptorResponse"|"allExtensionNumbersResponse"|"listServicesResponse"|"errorResponse");

                static encode(message: grpc.reflection.v1.ServerReflectionResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.ServerReflectionResponse & grpc.reflection.v1.ServerReflectionResponse.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.ServerReflectionResponse;
            }

            namespace ServerReflectionResponse {
                interface $Properties {
                    validHost?: (string|null);

                    originalRequest?: (grpc.reflection.v1.ServerReflectionRequest.$Properties|null);

                    fileDescriptorResponse?: (grpc.reflection.v1.FileDescriptorResponse.$Properties|null);

                    allExtensionNumbersResponse?: (grpc.reflection.v1.ExtensionNumberResponse.$Properties|null);

                    listServicesResponse?: (grpc.reflection.v1.ListServiceResponse.$Properties|null);

                    errorResponse?: (grpc.reflection.v1.ErrorResponse.$Properties|null);

                    messageResponse?: ("fileDescriptorResponse"|"allExtensionNumbersResponse"|"listServicesResponse"|"errorResponse");

                    $unknowns?: Uint8Array[];
                }

                type $Shape = {
                  validHost?: string|null;
                  originalRequest?: grpc.reflection.v1.ServerReflectionRequest.$Shape|null;
                  fileDescriptorResponse?: grpc.reflection.v1.FileDescriptorResponse.$Shape|null;
                  allExtensionNumbersResponse?: grpc.reflection.v1.ExtensionNumberResponse.$Shape|null;
                  listServicesResponse?: grpc.reflection.v1.ListServiceResponse.$Shape|null;
                  errorResponse?: grpc.reflection.v1.ErrorResponse.$Shape|null;
                  $unknowns?: Uint8Array[];
                } & (
                  ({ messageResponse?: undefined; fileDescriptorResponse?: null; allExtensionNumbersResponse?: null; listServicesResponse?: null; errorResponse?: null }|{ messageResponse?: "fileDescriptorResponse"; fileDescriptorResponse: grpc.reflection.v1.FileDescriptorResponse.$Shape; allExtensionNumbersResponse?: null; listServicesResponse?: null; errorResponse?: null }|{ messageResponse?: "allExtensionNumbersResponse"; fileDescriptorResponse?: null; allExtensionNumbersResponse: grpc.reflection.v1.ExtensionNumberResponse.$Shape; listServicesResponse?: null; errorResponse?: null }|{ messageResponse?: "listServicesResponse"; fileDescriptorResponse?: null; allExtensionNumbersResponse?: null; listServicesResponse: grpc.reflection.v1.ListServiceResponse.$Shape; errorResponse?: null }|{ messageResponse?: "errorResponse"; fileDescriptorResponse?: null; allExtensionNumbersResponse?: null; listServicesResponse?: null; errorResponse: grpc.reflection.v1.ErrorResponse.$Shape })
                );
            }

            interface IFileDescriptorResponse extends grpc.reflection.v1.FileDescriptorResponse.$Properties {
            }

            class FileDescriptorResponse {
                constructor(properties?: grpc.reflection.v1.FileDescriptorResponse.$Properties);

                $unknowns?: Uint8Array[];

                fileDescriptorProto: Uint8Array[];

                static encode(message: grpc.reflection.v1.FileDescriptorResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.FileDescriptorResponse & grpc.reflection.v1.FileDescriptorResponse.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.FileDescriptorResponse;
            }

            namespace FileDescriptorResponse {
                interface $Properties {
                    fileDescriptorProto?: (Uint8Array[]|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.reflection.v1.FileDescriptorResponse.$Properties;
            }

            interface IExtensionNumberResponse extends grpc.reflection.v1.ExtensionNumberResponse.$Properties {
            }

            class ExtensionNumberResponse {
                constructor(properties?: grpc.reflection.v1.ExtensionNumberResponse.$Properties);

                $unknowns?: Uint8Array[];

                baseTypeName: string;

                extensionNumber: number[];

                static encode(message: grpc.reflection.v1.ExtensionNumberResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.ExtensionNumberResponse & grpc.reflection.v1.ExtensionNumberResponse.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.ExtensionNumberResponse;
            }

            namespace ExtensionNumberResponse {
                interface $Properties {
                    baseTypeName?: (string|null);

                    extensionNumber?: (number[]|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.reflection.v1.ExtensionNumberResponse.$Properties;
            }

            interface IListServiceResponse extends grpc.reflection.v1.ListServiceResponse.$Properties {
            }

            class ListServiceResponse {
                constructor(properties?: grpc.reflection.v1.ListServiceResponse.$Properties);

                $unknowns?: Uint8Array[];

                service: grpc.reflection.v1.ServiceResponse.$Properties[];

                static encode(message: grpc.reflection.v1.ListServiceResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.ListServiceResponse & grpc.reflection.v1.ListServiceResponse.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.ListServiceResponse;
            }

            namespace ListServiceResponse {
                interface $Properties {
                    service?: (grpc.reflection.v1.ServiceResponse.$Properties[]|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.reflection.v1.ListServiceResponse.$Properties;
            }

            interface IServiceResponse extends grpc.reflection.v1.ServiceResponse.$Properties {
            }

            class ServiceResponse {
                constructor(properties?: grpc.reflection.v1.ServiceResponse.$Properties);

                $unknowns?: Uint8Array[];

                name: string;

                static encode(message: grpc.reflection.v1.ServiceResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.ServiceResponse & grpc.reflection.v1.ServiceResponse.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.ServiceResponse;
            }

            namespace ServiceResponse {
                interface $Properties {
                    name?: (string|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.reflection.v1.ServiceResponse.$Properties;
            }

            interface IErrorResponse extends grpc.reflection.v1.ErrorResponse.$Properties {
            }

            class ErrorResponse {
                constructor(properties?: grpc.reflection.v1.ErrorResponse.$Properties);

                $unknowns?: Uint8Array[];

                errorCode: number;

                errorMessage: string;

                static encode(message: grpc.reflection.v1.ErrorResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

                static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): grpc.reflection.v1.ErrorResponse & grpc.reflection.v1.ErrorResponse.$Shape;

                static fromObject(object: { [k: string]: any }): grpc.reflection.v1.ErrorResponse;
            }

            namespace ErrorResponse {
                interface $Properties {
                    errorCode?: (number|null);

                    errorMessage?: (string|null);

                    $unknowns?: Uint8Array[];
                }

                type $Shape = grpc.reflection.v1.ErrorResponse.$Properties;
            }
        }
    }
}
