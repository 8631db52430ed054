/*
 * Calls one unary gRPC method with the C++ client of gRPC, whose flow control differs from that of h2load:
 *
 *     grpc-core-client ADDRESS METHOD FILE CHANNELS CALLS SECONDS
 *
 * FILE has the request message, CALLS are in flight on each channel. Prints calls a second, the median and the 99th
 * percentile of their latency in milliseconds, and the number of failed calls, as JSON.
 */
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Call {
  size_t channel;
  Clock::time_point start;
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

std::unique_ptr<grpc::GenericStub> connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return std::make_unique<grpc::GenericStub>(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

double percentile(const std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(share * (sorted.size() - 1))];
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) return 2;
  const std::string address = words[1], method = words[2];
  std::ifstream file(words[3], std::ios::binary);
  const std::string message{std::istreambuf_iterator<char>(file), {}};
  const grpc::Slice slice(message);
  const grpc::ByteBuffer request(&slice, 1);
  const size_t channels = std::stoul(words[4]), calls = std::stoul(words[5]);
  const auto duration = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::stod(words[6])));

  std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
  for (size_t i = 0; i < channels; i++) stubs.push_back(connect(address));
  grpc::CompletionQueue queue;
  const auto begin = [&](size_t channel) {
    auto* call = new Call{channel, Clock::now()};
    call->reader = stubs[channel]->PrepareUnaryCall(&call->context, method, request, &queue);
    call->reader->StartCall();
    call->reader->Finish(&call->answer, &call->status, call);
  };
  const auto start = Clock::now(), end = start + duration;
  size_t open = channels * calls, errors = 0;
  for (size_t i = 0; i < open; i++) begin(i % channels);
  std::vector<double> latencies;
  void* tag;
  bool ok;
  while (open > 0 && queue.Next(&tag, &ok)) {
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    const auto now = Clock::now();
    if (!call->status.ok()) errors++;
    else latencies.push_back(std::chrono::duration<double, std::milli>(now - call->start).count());
    if (now < end && errors == 0) begin(call->channel);
    else open--;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::sort(latencies.begin(), latencies.end());
  std::printf("{\"rate\":%f,\"p50Ms\":%f,\"p99Ms\":%f,\"errors\":%zu}\n", latencies.size() / seconds,
              percentile(latencies, 0.5), percentile(latencies, 0.99), errors);
}
